import { useState } from "react";
import { Link } from "wouter";
import { saveFile } from "@/api/download";
import { Asked } from "@/kit/Asked";
import { Command, shellWord } from "@/kit/Command";
import { Facts } from "@/kit/Facts";
import { bytes, when, whole } from "@/kit/numbers";
import { Page } from "@/kit/Page";
import { ProblemBox } from "@/kit/ProblemBox";
import { usePathPart } from "@/kit/params";
import { datasetPath } from "@/routes";
import "./dataset.css";
import { FilterBar } from "./FilterBar";
import { ProfilePanel } from "./ProfilePanel";
import { RemoveDataset } from "./RemoveDataset";
import { RowList } from "./RowList";
import { useDataset, useFilters } from "./rows";
import { Versions } from "./Versions";

/** A dataset: what it is, what its rows are like, and those of them that are asked for. */
export default function Dataset() {
  const name = usePathPart("name");
  return <OneDataset key={name} name={name} />;
}

function OneDataset({ name }: { name: string }) {
  const dataset = useDataset(name);
  const [filters, change] = useFilters();
  return (
    <Page title={name} actions={<Actions name={name} file={dataset.data?.file} />}>
      <Asked query={dataset} what="the dataset">
        {(found) => (
          <>
            {found.description ? <p>{found.description}</p> : null}
            <Facts
              of={{
                Rows: whole(found.num_records),
                Size: bytes(found.size_bytes),
                File: <code>{`${found.dir}/${found.file}`}</code>,
                Dialect: found.dialect ?? "told from the rows",
                Version: found.version || null,
                Licence: found.licence,
                Status: found.synced_at ? `${found.status}, ${when(found.synced_at)}` : found.status,
                Hash: <code>{found.sha256.slice(0, 16)}</code>,
                Changed: when(found.updated_at),
              }}
            />
            <details>
              <summary>Versions, commands, removal</summary>
              <h3>Versions of the file</h3>
              <Versions name={name} />
              <h3>On the command line</h3>
              <Command text={`turnmill dataset validate ${shellWord(name)}`} />
              <Command text={`turnmill dataset preview ${shellWord(name)}`} />
              <RemoveDataset name={name} />
            </details>
          </>
        )}
      </Asked>
      <ProfilePanel name={name} filters={filters} onFilter={change} />
      <FilterBar filters={filters} onFilter={change} />
      <RowList name={name} filters={filters} />
    </Page>
  );
}

function Actions({ name, file }: { name: string; file: string | undefined }) {
  const [error, setError] = useState<unknown>(null);
  const path = `/v1/training/datasets/by-name/${encodeURIComponent(name)}/file`;
  const save = () => saveFile(path, file ?? name).then(() => setError(null), setError);
  return (
    <>
      <Link href={datasetPath(name, "quarantine")} className="button">
        Quarantine
      </Link>
      <Link href={datasetPath(name, "compare")} className="button">
        Compare
      </Link>
      <button type="button" onClick={save}>
        Export the file
      </button>
      <Link href={`/jobs/new?dataset=${encodeURIComponent(name)}`} className="button primary">
        Start a job
      </Link>
      {error ? <ProblemBox error={error} onRetry={save} /> : null}
    </>
  );
}
