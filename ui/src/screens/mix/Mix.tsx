import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useSearchParams } from "wouter";
import { answered, client, type Schemas } from "@/api/client";
import { Asked } from "@/kit/Asked";
import { Command, shellWord } from "@/kit/Command";
import { Empty } from "@/kit/Empty";
import { Head, numbers } from "@/kit/Head";
import { share, whole } from "@/kit/numbers";
import { Page } from "@/kit/Page";
import "./mix.css";
import { type Mixture, mixtureOf, withWeight } from "./mixture";

const MOST = 10;
const STEP = 0.1;

/** How much of each dataset an epoch has: weights, and what comes of them at once. */
export default function Mix() {
  const [search, setSearch] = useSearchParams();
  const mixture = mixtureOf(search);
  const listed = useQuery({
    queryKey: ["datasets"],
    queryFn: () => answered(client.GET("/v1/training/datasets")),
  });
  return (
    <Page title="Mix">
      <p>
        Weights are of the same scale, whatever it is. A dataset without one has its share of all rows. Every
        row is counted as one example: a run counts what comes of it.
      </p>
      <Asked query={listed} what="the datasets">
        {({ datasets }) =>
          datasets.length === 0 ? (
            <Empty title="There is nothing to mix." command="turnmill dataset add FILE.jsonl" />
          ) : (
            <>
              <Weights
                datasets={datasets}
                mixture={mixture}
                onWeight={(name, weight) => setSearch((before) => withWeight(before, name, weight))}
              />
              <Plan mixture={mixture} />
            </>
          )
        }
      </Asked>
    </Page>
  );
}

interface WeightsProps {
  datasets: readonly Schemas["Dataset"][];
  mixture: Mixture;
  /** null: it is not in the mix. */
  onWeight: (name: string, weight: number | null) => void;
}

function Weights({ datasets, mixture, onWeight }: WeightsProps) {
  return (
    <fieldset className="weights">
      <legend>Datasets</legend>
      {datasets.map(({ name, num_records }) => {
        const weight = mixture[name];
        return (
          <div key={name} className="weight">
            <label>
              <input
                type="checkbox"
                checked={weight !== undefined}
                onChange={(event) => onWeight(name, event.target.checked ? 1 : null)}
              />{" "}
              {name} <small>{whole(num_records)} rows</small>
            </label>
            <input
              type="range"
              min={0}
              max={MOST}
              step={STEP}
              disabled={weight === undefined}
              value={weight ?? 1}
              aria-label={`Weight of ${name}`}
              onChange={(event) => onWeight(name, Number(event.target.value))}
            />
            <output>{weight === undefined ? "–" : weight.toFixed(1)}</output>
          </div>
        );
      })}
    </fieldset>
  );
}

function Plan({ mixture }: { mixture: Mixture }) {
  const datasets = Object.entries(mixture).map(([name, weight]) => ({ name, weight }));
  const plan = useQuery({
    queryKey: ["mix", mixture],
    queryFn: () => answered(client.POST("/v1/training/mix", { body: { datasets, epoch: "total" } })),
    enabled: datasets.length > 0,
    placeholderData: keepPreviousData,
  });
  if (datasets.length === 0) return <p className="quiet">Choose the datasets that are to be mixed.</p>;
  return (
    <Asked query={plan} what="what an epoch would have">
      {({ examples, sources, warnings }) => (
        <section aria-label="An epoch">
          <h2>An epoch: {whole(examples)} rows</h2>
          {warnings.map((warning) => (
            <p key={warning} role="alert">
              {warning}
            </p>
          ))}
          <Shares sources={sources} examples={examples} />
          <p>On the command line, with each dataset as a source:</p>
          <Command text={commandOf(mixture)} />
        </section>
      )}
    </Asked>
  );
}

function Shares({ sources, examples }: { sources: readonly Schemas["MixShare"][]; examples: number }) {
  return (
    <div className="scroll-x">
      <table>
        <Head
          columns={["Dataset", numbers("Has"), numbers("Gives"), numbers("Share"), numbers("Passes"), "Is"]}
        />
        <tbody>
          {sources.map((one) => (
            <tr key={one.source}>
              <th scope="row">{one.source}</th>
              <td className="number">{whole(one.examples)}</td>
              <td className="number">{whole(one.drawn)}</td>
              <td className="number">
                <meter
                  max={1}
                  value={examples ? one.drawn / examples : 0}
                  aria-label={`Share of ${one.source}`}
                />{" "}
                {share(one.drawn, examples)}
              </td>
              <td className="number">{one.passes.toFixed(2)}</td>
              <td>{one.says}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function commandOf(mixture: Mixture): string {
  const weights = Object.entries(mixture).map(
    ([name, weight]) => `--sources.${shellWord(name)}.weight ${weight}`,
  );
  return ["turnmill mix CONFIG.yaml", ...weights].join(" ");
}
