import { useQuery } from "@tanstack/react-query";
import { answered, client, type Schemas } from "@/api/client";
import { Asked } from "@/kit/Asked";
import { Command } from "@/kit/Command";
import { Head, numbers } from "@/kit/Head";
import { share, whole } from "@/kit/numbers";

type Side = Schemas["RowsSide"];

/** What a job's strategy chose, beside as many rows that were drawn at random. */
export function Selection({ id, strategy }: { id: string; strategy: string }) {
  const selection = useQuery({
    queryKey: ["job", id, "selection"],
    queryFn: () =>
      answered(client.GET("/v1/training/jobs/{job_id}/selection", { params: { path: { job_id: id } } })),
  });
  return (
    <section aria-label="Selection">
      <h2>What {strategy} chose</h2>
      <Asked query={selection} what="the selection">
        {({ selected, control, shared_rows }) => (
          <>
            <p>
              A strategy is worth its cost where a model trained on its rows is better than one trained on the
              control. {whole(shared_rows)} rows are in both.
            </p>
            <div className="scroll-x">
              <table>
                <Head columns={["Rows", numbers(strategy), numbers("random control")]} />
                <tbody>
                  {measuresOf(selected, control).map(({ name, values }) => (
                    <tr key={name}>
                      <th scope="row">{name}</th>
                      {values.map((value, place) => (
                        <td key={place === 0 ? "selected" : "control"} className="number">
                          {value}
                        </td>
                      ))}
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
            <Command text={`turnmill compare JOBS/${id}/prepared`} />
          </>
        )}
      </Asked>
    </section>
  );
}

interface Measure {
  name: string;
  values: [selected: string, control: string];
}

/** The same figures of both sides; of sources and kinds those that either has. */
export function measuresOf(selected: Side, control: Side): Measure[] {
  const both = (name: string, say: (side: Side) => string): Measure => ({
    name,
    values: [say(selected), say(control)],
  });
  const names = (of: (side: Side) => object) => [
    ...new Set([selected, control].flatMap((side) => Object.keys(of(side)))),
  ];
  return [
    both("rows", ({ rows }) => whole(rows)),
    both("tokens", ({ tokens }) => whole(tokens)),
    both("tokens that train", ({ trained_tokens }) => whole(trained_tokens)),
    both("tokens of an example, median", ({ lengths }) => said(lengths["50"])),
    both("tokens of an example, most", ({ lengths }) => said(lengths.max)),
    ...["quartile_1", "median", "quartile_3"].map((name) =>
      both(`perplexity, ${name.replace("_", " ")}`, ({ perplexity }) => said(perplexity[name])),
    ),
    ...names(({ sources }) => sources).map((name) =>
      both(`from ${name}`, ({ sources, rows }) => share(sources[name] ?? 0, rows)),
    ),
    ...names(({ trained_by_kind }) => trained_by_kind).map((name) =>
      both(`trained: ${name}`, ({ trained_by_kind, trained_tokens }) =>
        share(trained_by_kind[name] ?? 0, trained_tokens),
      ),
    ),
  ];
}

function said(value: number | undefined): string {
  if (value === undefined) return "–";
  return value < 1000 ? String(Number(value.toPrecision(4))) : whole(value);
}
