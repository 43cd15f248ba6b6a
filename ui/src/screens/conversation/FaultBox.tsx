import { useQuery } from "@tanstack/react-query";
import { answered, client, type Schemas } from "@/api/client";
import type { Row } from "./row";

type CodeMeaning = Schemas["CodeMeaning"];

/** Why a row would leave, and what to do about it; nothing for a row that stays. */
export function FaultBox({ row }: { row: Pick<Row, "code" | "error" | "at" | "line"> }) {
  const meaning = useMeaning(row.code);
  if (row.code === null) return null;
  return (
    <section className="problem" role="alert" data-code={row.code}>
      <h2>
        This row leaves: <code>{row.code}</code>
      </h2>
      <p>
        {row.error}
        {row.at === null ? "" : ` (message ${row.at})`}
      </p>
      {meaning ? (
        <p>
          {meaning.means} <strong>What to do:</strong> {meaning.remedy}
        </p>
      ) : null}
    </section>
  );
}

/** What the server says of a code; nothing where it does not. */
export function useMeaning(code: string | null): CodeMeaning | undefined {
  const codes = useQuery({
    queryKey: ["codes"],
    queryFn: ({ signal }) => answered(client.GET("/v1/training/codes", { signal })),
    enabled: code !== null,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  return codes.data?.codes.find((one) => one.code === code);
}
