import { useQuery } from "@tanstack/react-query";
import { Link, useSearchParams } from "wouter";
import { answered, client, type Schemas } from "@/api/client";
import { Asked } from "@/kit/Asked";
import { share, whole } from "@/kit/numbers";
import { Page } from "@/kit/Page";
import { usePathPart } from "@/kit/params";
import { datasetPath } from "@/routes";
import { type Profile, useProfile } from "../dataset/rows";
import { Versions } from "../dataset/Versions";

/** A dataset beside another one: the rows that both have, those that one has, and what each is like. */
export default function Compare() {
  const name = usePathPart("name");
  const [search, setSearch] = useSearchParams();
  const against = search.get("against") ?? "";
  const listed = useQuery({
    queryKey: ["datasets"],
    queryFn: () => answered(client.GET("/v1/training/datasets")),
  });
  const others = listed.data?.datasets.filter((one) => one.name !== name) ?? [];
  return (
    <Page
      title={`Compare ${name}`}
      actions={
        <Link href={datasetPath(name)} className="button">
          The dataset
        </Link>
      }
    >
      <label className="row">
        With
        <select value={against} onChange={(event) => setSearch({ against: event.target.value })}>
          <option value="">choose a dataset</option>
          {others.map((one) => (
            <option key={one.name}>{one.name}</option>
          ))}
        </select>
      </label>
      {against ? <Shared name={name} against={against} /> : null}
      {against ? <Beside names={[name, against]} /> : null}
      <h2>Versions of {name}</h2>
      <Versions name={name} />
    </Page>
  );
}

function Shared({ name, against }: { name: string; against: string }) {
  const diff = useQuery({
    queryKey: ["diff", name, against],
    queryFn: () =>
      answered(
        client.GET("/v1/training/datasets/by-name/{name}/diff", {
          params: { path: { name }, query: { against } },
        }),
      ),
    staleTime: 60_000,
  });
  return (
    <Asked query={diff} what="the rows of both">
      {({ shared, only: [here = 0, there = 0], lines: [ofHere = [], ofThere = []] }) => (
        <>
          <p role="status">
            Both have {whole(shared)} conversations. {name} alone has {whole(here)}, {against} alone{" "}
            {whole(there)}.
          </p>
          <Only name={name} lines={ofHere} count={here} />
          <Only name={against} lines={ofThere} count={there} />
        </>
      )}
    </Asked>
  );
}

function Only({ name, lines, count }: { name: string; lines: readonly number[]; count: number }) {
  if (lines.length === 0) return null;
  return (
    <p>
      Only in {name}:{" "}
      {lines.map((line) => (
        <span key={line}>
          <Link href={datasetPath(name, "rows", line)}>row {line}</Link>{" "}
        </span>
      ))}
      {count > lines.length ? "…" : null}
    </p>
  );
}

function Beside({ names }: { names: readonly [string, string] }) {
  const [here, there] = [useProfile(names[0]), useProfile(names[1])];
  return (
    <Asked query={here} what={names[0]}>
      {(one) => (
        <Asked query={there} what={names[1]}>
          {(other) => <Table names={names} profiles={[one, other]} />}
        </Asked>
      )}
    </Asked>
  );
}

const MEASURES: Record<string, (profile: Profile) => number> = {
  accepted: ({ accepted }) => accepted,
  "with reasoning": ({ kinds }) => kinds.reasoning,
  "with tool calls": ({ kinds }) => kinds.calls,
  "with tool definitions": ({ kinds }) => kinds.tools,
};

function Table({
  names,
  profiles,
}: {
  names: readonly [string, string];
  profiles: readonly [Profile, Profile];
}) {
  const codes = new Set(profiles.flatMap((profile) => Object.keys(profile.codes)));
  const measures: [string, (profile: Schemas["DatasetProfile"]) => number][] = [
    ...Object.entries(MEASURES),
    ...[...codes]
      .sort()
      .map((code): [string, (profile: Profile) => number] => [code, (one) => one.codes[code] ?? 0]),
  ];
  return (
    <div className="scroll-x">
      <table>
        <thead>
          <tr>
            <th scope="col">Rows</th>
            {names.map((name, place) => (
              <th key={name} scope="col" className="number">
                {name} ({whole(profiles[place]?.rows ?? 0)})
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {measures.map(([said, measure]) => (
            <tr key={said}>
              <th scope="row">{said}</th>
              {profiles.map((profile, place) => (
                <td key={names[place]} className="number">
                  {whole(measure(profile))} ({share(measure(profile), profile.rows)})
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
