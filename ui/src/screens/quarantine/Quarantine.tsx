import { useMutation, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link, useSearchParams } from "wouter";
import { answered, client, type Schemas } from "@/api/client";
import { Asked } from "@/kit/Asked";
import { Command, shellWord } from "@/kit/Command";
import { Empty } from "@/kit/Empty";
import { whole } from "@/kit/numbers";
import { Page } from "@/kit/Page";
import { usePathPart } from "@/kit/params";
import { datasetPath } from "@/routes";
import { RowList } from "../dataset/RowList";
import { useProfile } from "../dataset/rows";
import "../dataset/dataset.css";
import { Moves } from "./Moves";
import "./quarantine.css";
import { usePlugins } from "@/api/usePlugins";
import { type Reason, Reasons } from "./Reasons";
import { ReplayForm } from "./ReplayForm";

/** The rows of a dataset that would leave: why, which, and what would mend them. */
export default function Quarantine() {
  const name = usePathPart("name");
  const [search, setSearch] = useSearchParams();
  const code = search.get("code") ?? "";
  const profile = useProfile(name);
  const codes = useQuery({
    queryKey: ["codes"],
    queryFn: () => answered(client.GET("/v1/training/codes")),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const filters = useMemo(() => ({ code: code || "any" }), [code]);
  const choose = (next: string) => setSearch(next ? { code: next } : {});
  return (
    <Page
      title={`${name}: quarantine`}
      actions={
        <Link href={datasetPath(name)} className="button">
          All rows
        </Link>
      }
    >
      <Asked query={profile} what="the rows, to count them">
        {(found) =>
          Object.keys(found.codes).length === 0 ? (
            <Empty
              title={`None of the ${whole(found.rows)} rows would leave.`}
              command={`turnmill dataset validate ${shellWord(name)}`}
            />
          ) : (
            <div className="quarantine">
              <div className="stack">
                <Reasons reasons={reasonsOf(found.codes, codes.data)} chosen={code} onChoose={choose} />
                <DatasetReplay name={name} />
              </div>
              <div>
                <RowList name={name} filters={filters} />
              </div>
            </div>
          )
        }
      </Asked>
    </Page>
  );
}

function reasonsOf(counts: Record<string, number>, codes: Schemas["Codes"] | undefined): Reason[] {
  const known = new Map(codes?.codes.map((one) => [one.code, one]));
  return Object.entries(counts)
    .sort(([, one], [, other]) => other - one)
    .map(([code, rows]) => {
      const { means = "", remedy = "" } = known.get(code) ?? {};
      return { class: "rejected", code, rows, means, remedy };
    });
}

function DatasetReplay({ name }: { name: string }) {
  const repairs = usePlugins("repairs");
  const dialects = usePlugins("dialects");
  const replay = useMutation({
    mutationFn: (asked: { repairs: string[]; dialect: string | null }) =>
      answered(
        client.POST("/v1/training/datasets/by-name/{name}/replay", {
          params: { path: { name } },
          body: asked,
        }),
      ),
  });
  return (
    <ReplayForm
      repairs={repairs}
      dialects={dialects.map((one) => one.name)}
      isBusy={replay.isPending}
      error={replay.error}
      onReplay={(chosen, dialect) => replay.mutate({ repairs: chosen, dialect })}
    >
      {replay.data ? (
        <div role="status">
          <p>
            {whole(replay.data.passes)} of {whole(replay.data.rejected)} rejected rows would pass
            {replay.data.complete ? "." : ", of those that could be looked at in time."}
          </p>
          <Moves moves={replay.data.moves} />
          <p>The same on the command line:</p>
          <Command text={commandOf(`SHELF/${name}/FILE`, replay.variables)} />
        </div>
      ) : null}
    </ReplayForm>
  );
}

/** What checks the data file so on the command line. */
function commandOf(file: string, asked: { repairs: string[]; dialect: string | null } | undefined): string {
  const words = ["turnmill", "check", shellWord(file)];
  if (asked?.dialect) words.push("--dialect", shellWord(asked.dialect));
  if (asked?.repairs.length) words.push("--repairs", shellWord(asked.repairs.join(",")));
  return words.join(" ");
}
