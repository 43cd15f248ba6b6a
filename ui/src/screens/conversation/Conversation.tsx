import { useMemo } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { Asked } from "@/kit/Asked";
import { Badge } from "@/kit/Badge";
import { Facts } from "@/kit/Facts";
import { bytes, whole } from "@/kit/numbers";
import { Page } from "@/kit/Page";
import { usePathPart } from "@/kit/params";
import { useShortcuts } from "@/kit/shortcuts";
import { datasetPath } from "@/routes";
import { Chat } from "./Chat";
import { FaultBox } from "./FaultBox";
import { type Row, useRow } from "./row";
import { Source } from "./Source";
import "./conversation.css";

const VIEWS = { chat: "Conversation", source: "Source and conversation" } as const;

/** A row of a dataset as a conversation, beside what it was made of. */
export default function Conversation() {
  const name = usePathPart("name");
  const line = Number(usePathPart("line"));
  const row = useRow(name, line);
  const [, navigate] = useLocation();
  const [params] = useSearchParams();
  const view = params.get("view") === "source" ? "source" : "chat";
  const to = (target: number, ...more: string[]) =>
    datasetPath(name, "rows", target, ...more) +
    (view === "source" && more.length === 0 ? "?view=source" : "");
  useRowKeys(
    row.data,
    (target) => navigate(to(target)),
    () => navigate(to(line, "tokens")),
  );
  return (
    <Page
      title={`${name}, row ${line}`}
      actions={<RowLinks row={row.data} name={name} line={line} to={to} />}
    >
      <Asked query={row} what="the row">
        {(found) => (
          <div className="stack">
            <FaultBox row={found} />
            <RowFacts row={found} />
            <nav className="row" aria-label="Views of this row">
              {Object.entries(VIEWS).map(([one, title]) => (
                <Link
                  key={one}
                  className="button"
                  href={datasetPath(name, "rows", line) + (one === "chat" ? "" : `?view=${one}`)}
                  aria-current={one === view ? "page" : undefined}
                >
                  {title}
                </Link>
              ))}
            </nav>
            {view === "source" ? <Source row={found} /> : <Chat key={found.line} row={found} />}
          </div>
        )}
      </Asked>
    </Page>
  );
}

interface RowLinksProps {
  row: Row | undefined;
  name: string;
  line: number;
  to: (target: number, ...more: string[]) => string;
}

function RowLinks({ row, name, line, to }: RowLinksProps) {
  return (
    <>
      <Link className="button" href={datasetPath(name)}>
        All rows
      </Link>
      <Step target={row?.previous} to={to} title="Previous" />
      <Step target={row?.next} to={to} title="Next" />
      <Link className="button primary" href={to(line, "tokens")}>
        Tokens
      </Link>
    </>
  );
}

interface StepProps {
  target: number | null | undefined;
  to: (target: number) => string;
  title: string;
}

function Step({ target, to, title }: StepProps) {
  if (typeof target === "number")
    return (
      <Link className="button" href={to(target)}>
        {title}
      </Link>
    );
  return (
    <button type="button" disabled>
      {title}
    </button>
  );
}

function RowFacts({ row }: { row: Row }) {
  const messages = row.conversation?.messages.length;
  return (
    <Facts
      of={{
        Dialect: row.dialect,
        Source: row.source,
        Id: row.id ? <code>{row.id}</code> : null,
        Size: messages === undefined ? bytes(row.bytes) : `${bytes(row.bytes)}, ${whole(messages)} messages`,
        Repairs:
          row.repairs.length > 0 ? (
            <span className="row">
              {row.repairs.map((one) => (
                <Badge key={one} tone="warn">
                  {one}
                </Badge>
              ))}
            </span>
          ) : null,
      }}
    />
  );
}

function useRowKeys(row: Row | undefined, go: (line: number) => void, tokens: () => void): void {
  const { next, previous } = row ?? {};
  useShortcuts(
    // biome-ignore lint/correctness/useExhaustiveDependencies: what they do changes with the row alone
    useMemo(
      () => [
        { key: "j", what: "Next row", run: () => typeof next === "number" && go(next) },
        { key: "k", what: "Previous row", run: () => typeof previous === "number" && go(previous) },
        { key: "v", what: "Tokens of this row", run: tokens },
      ],
      [next, previous],
    ),
  );
}
