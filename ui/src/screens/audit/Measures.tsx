import { Head, numbers } from "@/kit/Head";

interface Measure {
  mean: number;
  error: number;
  turns: number;
}

const NAMES: Record<string, string> = {
  exact: "The same",
  normalised: "The same but for case and spaces",
  f1: "F1 of the words",
  nll: "Nats a token of the recorded answer",
};

/** What an audit measured, over all of its questions; nothing before it is done. */
export function Measures({ result }: { result: Record<string, unknown> }) {
  const measures = Object.entries((result.measures ?? {}) as Record<string, { model?: Measure }>);
  if (measures.length === 0) return null;
  return (
    <div className="scroll-x">
      <table>
        <Head columns={["Measure", numbers("Mean"), numbers("± standard error"), numbers("Turns")]} />
        <tbody>
          {measures.map(([name, { model }]) =>
            model ? (
              <tr key={name}>
                <th scope="row">{NAMES[name] ?? name}</th>
                <td className="number">{model.mean.toFixed(3)}</td>
                <td className="number">{model.error.toFixed(3)}</td>
                <td className="number">{model.turns}</td>
              </tr>
            ) : null,
          )}
        </tbody>
      </table>
    </div>
  );
}
