import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "wouter";
import { answered, client, fetchWithToken } from "@/api/client";
import { problemOf } from "@/api/problem";
import { Asked } from "@/kit/Asked";
import { Empty } from "@/kit/Empty";
import { Page } from "@/kit/Page";
import type { Description } from "./fields";
import { JobForm } from "./JobForm";
import "./jobs.css";
import { type JobKind, KINDS } from "./jobs";

/** A job to be started: on which dataset, of which kind, with which options. */
export default function NewJob() {
  const [search, setSearch] = useSearchParams();
  const kind = KINDS.find((one) => one === search.get("kind")) ?? "prepare";
  const asked = useQuery({ queryKey: ["start"], queryFn: fetchWhatCanBeSaid });
  const choose = (name: "dataset" | "kind", value: string) =>
    setSearch(
      (before) => {
        const next = new URLSearchParams(before);
        next.set(name, value);
        return next;
      },
      { replace: true },
    );
  return (
    <Page title="Start a job">
      <Asked query={asked} what="what a job can be">
        {({ datasets, about, description }) =>
          datasets.length === 0 ? (
            <Empty
              title="A job needs a dataset, and there is none."
              command="turnmill dataset add FILE.jsonl"
            />
          ) : (
            <JobForm
              key={kind}
              kind={kind as JobKind}
              dataset={search.get("dataset") ?? ""}
              datasets={datasets}
              about={about}
              description={description}
              onChoose={choose}
            />
          )
        }
      </Asked>
    </Page>
  );
}

async function fetchWhatCanBeSaid() {
  const [listed, about, description] = await Promise.all([
    answered(client.GET("/v1/training/datasets")),
    answered(client.GET("/v1/training/about")),
    fetchDescription(),
  ]);
  return { datasets: listed.datasets.map(({ name }) => name), about, description };
}

/** The server's description of its interface, which says what the options of a job are. */
async function fetchDescription(): Promise<Description> {
  const response = await fetchWithToken(new Request(new URL("../openapi.json", document.baseURI)));
  if (!response.ok) throw problemOf(response.status, await response.json().catch(() => null));
  return response.json();
}
