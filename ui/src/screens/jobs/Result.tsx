import { Facts } from "@/kit/Facts";

const SHOWN = 12;

/** What a job's last command answered: its plain values, and all of it for whoever wants to see it. */
export function Result({ result }: { result: Record<string, unknown> }) {
  const plain = Object.entries(result).filter(([, value]) =>
    ["string", "number", "boolean"].includes(typeof value),
  );
  if (Object.keys(result).length === 0) return null;
  return (
    <section aria-label="Result">
      <h2>Result</h2>
      <Facts of={Object.fromEntries(plain.slice(0, SHOWN).map(([name, value]) => [name, String(value)]))} />
      <details>
        <summary>All of it, as JSON</summary>
        <pre>{JSON.stringify(result, null, 2)}</pre>
      </details>
    </section>
  );
}
