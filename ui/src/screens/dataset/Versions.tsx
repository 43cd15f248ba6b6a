import { useQuery } from "@tanstack/react-query";
import { answered, client } from "@/api/client";
import { Asked } from "@/kit/Asked";
import { Badge } from "@/kit/Badge";
import { Head, numbers } from "@/kit/Head";
import { bytes, when, whole } from "@/kit/numbers";

/** The contents that the data file had, the newest first. */
export function Versions({ name }: { name: string }) {
  const versions = useQuery({
    queryKey: ["versions", name],
    queryFn: () =>
      answered(client.GET("/v1/training/datasets/by-name/{name}/versions", { params: { path: { name } } })),
  });
  return (
    <Asked query={versions} what="the versions">
      {(found) => (
        <div className="scroll-x">
          <table>
            <Head columns={["Hash", numbers("Rows"), numbers("Size"), "First seen", "Last seen"]} />
            <tbody>
              {found.versions.map((version) => (
                <tr key={`${version.sha256} ${version.first_seen_at}`}>
                  <th scope="row">
                    <code>{version.sha256.slice(0, 16)}</code>{" "}
                    {version.current ? <Badge tone="good">now</Badge> : null}
                  </th>
                  <td className="number">{whole(version.num_records)}</td>
                  <td className="number">{bytes(version.size_bytes)}</td>
                  <td>{when(version.first_seen_at)}</td>
                  <td>{when(version.last_seen_at)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Asked>
  );
}
