import { useQuery } from "@tanstack/react-query";
import { answered, client, type Schemas } from "@/api/client";
import { asProblem } from "@/api/problem";
import { Facts } from "@/kit/Facts";
import { share, whole } from "@/kit/numbers";
import { ProblemBox } from "@/kit/ProblemBox";

type Prepared = Schemas["PreparedManifest"];

/** What the prepared rows of a job come to; nothing where it has none. */
export function Manifest({ id, isEnded }: { id: string; isEnded: boolean }) {
  const manifest = useQuery({
    queryKey: ["job", id, "manifest", isEnded],
    queryFn: async () => {
      try {
        return await answered(
          client.GET("/v1/training/jobs/{job_id}/manifest", { params: { path: { job_id: id } } }),
        );
      } catch (error) {
        if (asProblem(error).code === "not-prepared") return null;
        throw error;
      }
    },
  });
  if (manifest.error) return <ProblemBox error={manifest.error} onRetry={() => void manifest.refetch()} />;
  return manifest.data ? <Told manifest={manifest.data} /> : null;
}

function Told({ manifest }: { manifest: Prepared }) {
  const { rows } = manifest;
  const tokens = `${whole(manifest.tokens)}, of which ${whole(manifest.trained_tokens ?? 0)} train (${share(
    manifest.trained_tokens ?? 0,
    manifest.tokens,
  )})`;
  return (
    <section aria-label="Prepared rows">
      <h2>Prepared rows</h2>
      <Facts
        of={{
          Rows: `${whole(rows.read ?? 0)} read, ${whole(rows.accepted ?? 0)} accepted`,
          Examples: whole(manifest.examples),
          Packs: manifest.packs === null ? null : whole(manifest.packs),
          Tokens: tokens,
          "Longest example": manifest.max_tokens === null ? null : `${whole(manifest.max_tokens)} tokens`,
          Fingerprint: <code>{manifest.fingerprint.slice(0, 16)}</code>,
        }}
      />
      <div className="scroll-x">
        <table>
          <thead>
            <tr>
              <th scope="col">Source</th>
              {[
                "Read",
                "Accepted",
                "Rejected",
                "Filtered",
                "Duplicates",
                "Held out",
                "Tokens",
                "Trained",
              ].map((name) => (
                <th scope="col" key={name} className="number">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {manifest.sources.map((source) => (
              <tr key={source.name}>
                <th scope="row">{source.name}</th>
                {["read", "accepted", "rejected", "filtered", "duplicates", "eval"].map((fate) => (
                  <td key={fate} className="number">
                    {whole(source.rows[fate] ?? 0)}
                  </td>
                ))}
                <td className="number">{whole(source.tokens)}</td>
                <td className="number">{whole(source.trained_tokens)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Codes counts={manifest.codes} />
    </section>
  );
}

function Codes({ counts }: { counts: Record<string, number> }) {
  const ordered = Object.entries(counts).sort(([, first], [, second]) => second - first);
  if (ordered.length === 0) return null;
  return (
    <>
      <h3>Why rows left</h3>
      <ul>
        {ordered.map(([code, count]) => (
          <li key={code}>
            <code>{code}</code>: {whole(count)}
          </li>
        ))}
      </ul>
    </>
  );
}
