import type { Series } from "./metrics";
import { Plot } from "./Plot";
import type { Mark } from "./plot";

interface CurveProps {
  title: string;
  steps: readonly number[];
  series: readonly Series[];
  mark?: Mark | null;
  format: (value: number) => string;
}

const SHOWN_ROWS = 500;

/** Curves over the steps of a training, and the same numbers as a table. */
export function Curve({ title, steps, series, mark = null, format }: CurveProps) {
  if (series.length === 0) return null;
  const shared = { steps, series, mark, format };
  return (
    <figure className="panel curve">
      <figcaption>
        <strong>{title}</strong>
      </figcaption>
      <Plot key={series.map(({ name }) => name).join("\n")} title={title} {...shared} />
      <details>
        <summary>As a table</summary>
        <Numbers {...shared} />
      </details>
    </figure>
  );
}

interface NumbersProps {
  steps: readonly number[];
  series: readonly Series[];
  mark: Mark | null;
  format: (value: number) => string;
}

function Numbers({ steps, series, mark, format }: NumbersProps) {
  const first = Math.max(0, steps.length - SHOWN_ROWS);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by a keyboard
    <section className="numbers" tabIndex={0} aria-label="The numbers">
      {first > 0 ? (
        <p>
          The last {SHOWN_ROWS} steps; <code>metrics.jsonl</code> of the job has all of them.
        </p>
      ) : null}
      <table>
        <thead>
          <tr>
            <th scope="col">Step</th>
            {series.map(({ name }) => (
              <th scope="col" key={name} className="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {steps.slice(first).map((step, index) => (
            <tr key={step}>
              <th scope="row">
                {step}
                {mark?.step === step ? ` (${mark.name})` : ""}
              </th>
              {series.map(({ name, values }) => (
                <td key={name} className="number">
                  {said(values[first + index], format)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function said(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? "" : format(value);
}
