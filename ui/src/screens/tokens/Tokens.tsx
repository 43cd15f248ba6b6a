import { useMemo } from "react";
import { Link, useLocation } from "wouter";
import { Busy } from "@/kit/Asked";
import { Page } from "@/kit/Page";
import { ProblemBox } from "@/kit/ProblemBox";
import { usePathPart } from "@/kit/params";
import { useShortcuts } from "@/kit/shortcuts";
import { datasetPath } from "@/routes";
import { FaultBox } from "../conversation/FaultBox";
import { RawText } from "../conversation/RawText";
import { type Row, useRow } from "../conversation/row";
import { Legend } from "./Legend";
import type { Reading } from "./reading";
import { SideBySide } from "./SideBySide";
import { Switcher } from "./Switcher";
import { ThreePanes } from "./ThreePanes";
import { type Named, useAbout } from "./useAbout";
import { useReading } from "./useExplained";
import { askedOf, type Choice, useViewing, withDefaults } from "./viewing";
import "./tokens.css";

/** A row's conversation, its rendered text and its tokens, each beside the others. */
export default function Tokens() {
  const name = usePathPart("name");
  const line = Number(usePathPart("line"));
  const viewing = useViewing();
  const about = useAbout();
  const row = useRow(name, line);
  const choice = useMemo(
    () => about && withDefaults(viewing.choice, about.models, about.templates),
    [viewing.choice, about],
  );
  useRowKeys(name, line, row.data);
  return (
    <Page title={`${name}, row ${line}: tokens`} actions={<Links name={name} line={line} row={row.data} />}>
      <div className="viewer-head">
        <Switcher viewing={{ ...viewing, choice: choice ?? viewing.choice }} about={about} />
        <Legend />
      </div>
      {choice ? (
        <Viewer name={name} line={line} choice={choice} about={about} row={row.data} />
      ) : (
        <Busy what="what the server has" />
      )}
      {row.error && !row.data ? <ProblemBox error={row.error} onRetry={() => void row.refetch()} /> : null}
    </Page>
  );
}

interface ViewerProps {
  name: string;
  line: number;
  choice: Choice;
  about: Named | undefined;
  row: Row | undefined;
}

function Viewer({ name, line, choice, about, row }: ViewerProps) {
  const reading = useReading(name, askedOf(line, choice));
  const { data, error } = reading;
  if (error && !data)
    return <Refused error={error} onRetry={() => void reading.refetch()} row={row} about={about} />;
  if (!data) return <Busy what="the tokens" />;
  const { code, message, at, text } = data.explained;
  return (
    <>
      {code ? <FaultBox row={{ code, error: message ?? null, at: at ?? null, line }} /> : null}
      {text === null && row ? <RawText row={row} /> : null}
      {choice.against ? (
        <Beside name={name} line={line} choice={choice} against={choice.against} reading={data} />
      ) : text === null ? null : (
        <ThreePanes key={`${name} ${line}`} reading={data} conversation={row?.conversation ?? null} />
      )}
    </>
  );
}

interface BesideProps {
  name: string;
  line: number;
  choice: Choice;
  against: string;
  reading: Reading;
}

const OWN = "the model's own";

function Beside({ name, line, choice, against, reading }: BesideProps) {
  const other = useReading(name, askedOf(line, choice, against === "own" ? "" : against));
  return (
    <SideBySide
      left={{ title: choice.template ?? OWN, reading }}
      right={{ title: against === "own" ? OWN : against, query: other }}
    />
  );
}

interface RefusedProps {
  error: unknown;
  onRetry: () => void;
  row: Row | undefined;
  about: Named | undefined;
}

/** Why there are no tokens, and the row all the same. */
function Refused({ error, onRetry, row, about }: RefusedProps) {
  return (
    <>
      <ProblemBox error={error} onRetry={onRetry} />
      <p>
        Choose another model or template above
        {about && about.templates.length > 0 ? `: turnmill's own are ${about.templates.join(", ")}` : ""}.
        This is the row:
      </p>
      {row ? <RawText row={row} /> : null}
    </>
  );
}

function Links({ name, line, row }: { name: string; line: number; row: Row | undefined }) {
  const { search } = window.location;
  const step = (target: number | null | undefined, title: string) =>
    typeof target === "number" ? (
      <Link className="button" href={datasetPath(name, "rows", target, "tokens") + search}>
        {title}
      </Link>
    ) : (
      <button type="button" disabled>
        {title}
      </button>
    );
  return (
    <>
      <Link className="button" href={datasetPath(name, "rows", line)}>
        Conversation
      </Link>
      {step(row?.previous, "Previous")}
      {step(row?.next, "Next")}
    </>
  );
}

function useRowKeys(name: string, line: number, row: Row | undefined): void {
  const [, navigate] = useLocation();
  const { next, previous } = row ?? {};
  useShortcuts(
    useMemo(() => {
      const go = (target: number | null | undefined) =>
        typeof target === "number" &&
        navigate(datasetPath(name, "rows", target, "tokens") + window.location.search);
      return [
        { key: "j", what: "Next row", run: () => go(next) },
        { key: "k", what: "Previous row", run: () => go(previous) },
        { key: "v", what: "Conversation of this row", run: () => navigate(datasetPath(name, "rows", line)) },
      ];
    }, [name, line, next, previous, navigate]),
  );
}
