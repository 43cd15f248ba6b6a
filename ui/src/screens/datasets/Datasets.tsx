import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { answered, client, type Schemas } from "@/api/client";
import { Asked } from "@/kit/Asked";
import { Badge } from "@/kit/Badge";
import { Empty } from "@/kit/Empty";
import { Head, numbers } from "@/kit/Head";
import { bytes, when, whole } from "@/kit/numbers";
import { Page } from "@/kit/Page";
import { Tooltip } from "@/kit/Tooltip";
import { datasetPath } from "@/routes";
import "./datasets.css";
import { Uploads } from "./Uploads";

/** The shelf: its datasets, what is wrong with the others, and where files are dropped. */
export default function Datasets() {
  const listed = useQuery({
    queryKey: ["datasets"],
    queryFn: () => answered(client.GET("/v1/training/datasets")),
  });
  const about = useQuery({ queryKey: ["about"], queryFn: () => answered(client.GET("/v1/training/about")) });
  const isAllowed = about.data !== undefined && !about.data.read_only && about.data.scope !== "read";
  return (
    <Page title="Datasets">
      <Uploads isAllowed={isAllowed}>
        <Asked query={listed} what="the datasets">
          {({ datasets, problems }) => (
            <>
              {datasets.length > 0 ? <Table datasets={datasets} /> : <NoDatasets />}
              <Problems problems={problems} />
            </>
          )}
        </Asked>
      </Uploads>
    </Page>
  );
}

function Table({ datasets }: { datasets: readonly Schemas["Dataset"][] }) {
  return (
    <div className="scroll-x">
      <table className="datasets">
        <Head
          columns={["Dataset", numbers("Rows"), numbers("Size"), "Format", "Version", "Status", "Changed"]}
        />
        <tbody>
          {datasets.map((dataset) => (
            <Row key={dataset.name} dataset={dataset} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({ dataset }: { dataset: Schemas["Dataset"] }) {
  const { name, description } = dataset;
  const link = <Link href={datasetPath(name)}>{name}</Link>;
  return (
    <tr>
      <th scope="row">
        {description ? <Tooltip text={description}>{link}</Tooltip> : link}
        {description ? <div className="description quiet">{description}</div> : null}
      </th>
      <td className="number">{whole(dataset.num_records)}</td>
      <td className="number">{bytes(dataset.size_bytes)}</td>
      <td>{dataset.format}</td>
      <td>{dataset.version || "–"}</td>
      <td>
        <Badge tone={dataset.status === "synced" ? "good" : "neutral"}>{dataset.status}</Badge>
      </td>
      <td>
        <time dateTime={dataset.updated_at}>{when(dataset.updated_at)}</time>
      </td>
    </tr>
  );
}

function NoDatasets() {
  return (
    <Empty title="The shelf holds no dataset yet." command="turnmill dataset add FILE.jsonl">
      <p>Upload a file, put a directory with a dataset.toml on the shelf, or:</p>
    </Empty>
  );
}

function Problems({ problems }: { problems: readonly Schemas["ShelfProblem"][] }) {
  if (problems.length === 0) return null;
  return (
    <section>
      <h2>Directories that are no datasets</h2>
      <ul className="problems">
        {problems.map(({ dir, error }) => (
          <li key={dir}>
            <Badge tone="bad">{dir}</Badge> {error}
          </li>
        ))}
      </ul>
      <p className="quiet">
        Mend what is named, and the next look shows them; <code>turnmill dataset list</code> says the same.
      </p>
    </section>
  );
}
