import { useMemo } from "react";
import { Head, numbers } from "@/kit/Head";
import { share, whole } from "@/kit/numbers";
import { countsOf, totalsOf } from "./counts";
import { useCursor } from "./cursor";
import type { Reading } from "./reading";
import { whyOfTurn } from "./whys";

/** Tokens of each message: how many there are, train, and are cut. */
export function CountsTable({ reading }: { reading: Reading }) {
  const cursor = useCursor();
  const counts = useMemo(() => countsOf(reading), [reading]);
  const totals = totalsOf(counts);
  const unit = reading.hasTokens ? "tokens" : "spans";
  return (
    <details className="counts panel">
      <summary>
        {whole(totals.tokens)} {unit}, {whole(totals.trained)} train ({share(totals.trained, totals.tokens)})
        {totals.cut > 0 ? `, ${whole(totals.cut)} cut` : ""}, by message
      </summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, which a keyboard must be able to do */}
      <section className="counts-table" tabIndex={0} aria-label="Tokens by message">
        <table>
          <Head columns={["Message", "Why", numbers(unit), numbers("train"), numbers("cut")]} />
          <tbody>
            {counts.map(({ message, role, why, position, tokens, trained, cut }) => (
              <tr key={message} title={whyOfTurn(why)}>
                <th scope="row">
                  <button
                    type="button"
                    className="plain"
                    onClick={() => cursor.choose({ position, message }, "keys")}
                  >
                    {message === null ? "" : `#${message} `}
                    {role}
                  </button>
                </th>
                <td>{why}</td>
                <td className="number">{whole(tokens)}</td>
                <td className="number">{whole(trained)}</td>
                <td className="number">{whole(cut)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </details>
  );
}
