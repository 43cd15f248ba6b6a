import { Badge } from "@/kit/Badge";
import { Head, numbers } from "@/kit/Head";
import { whole } from "@/kit/numbers";

export interface Move {
  code: string;
  becomes: string;
  rows: number;
}

/** What became of each code: rows that pass now, and those that leave with another code or the same. */
export function Moves({ moves }: { moves: readonly Move[] }) {
  return (
    <table>
      <Head columns={["Left with", "Becomes", numbers("Rows")]} />
      <tbody>
        {moves.map(({ code, becomes, rows }) => (
          <tr key={`${code} ${becomes}`}>
            <th scope="row">{code}</th>
            <td>
              <Badge tone={becomes === "passes" ? "good" : "neutral"}>{becomes}</Badge>
            </td>
            <td className="number">{whole(rows)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
