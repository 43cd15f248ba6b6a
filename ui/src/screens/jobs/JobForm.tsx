import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useRef, useState } from "react";
import { useLocation } from "wouter";
import { answered, client, type Schemas } from "@/api/client";
import { asProblem } from "@/api/problem";
import { usePlugins } from "@/api/usePlugins";
import { Command, shellWord } from "@/kit/Command";
import { ProblemBox } from "@/kit/ProblemBox";
import { jobPath } from "@/routes";
import { type Description, type Field, faultOf, fieldsOf, optionsOf } from "./fields";
import { type JobKind, KINDS, newKey, useJobs } from "./jobs";
import { OptionField } from "./OptionField";

interface JobFormProps {
  kind: JobKind;
  dataset: string;
  datasets: readonly string[];
  about: Schemas["About"];
  description: Description;
  onChoose: (name: "dataset" | "kind", value: string) => void;
}

const DONE: Record<JobKind, string> = {
  prepare: "Prepares the rows for a model: checks, renders, tokenizes and packs them.",
  train: "Carries the rows to the sidecar, which prepares them and trains a model on them.",
  evaluate: "Measures the losses of a model on the rows.",
  audit: "Asks a model the questions of the rows, and sets its answers beside the recorded ones.",
  export: "Prepares the rows, and writes them as another trainer takes them.",
};

/** What a job needs to be said; a refusal stands at the fields that it is about. */
export function JobForm({ kind, dataset, datasets, about, description, onChoose }: JobFormProps) {
  const fields = fieldsOf(description, kind);
  const [typed, setTyped] = useState<Record<string, string>>({});
  const options = optionsOf(fields, typed);
  const start = useStart();
  const known = useKnown(kind, about);
  const faults = start.error ? asProblem(start.error).faults : [];
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!start.isPending) start.mutate({ kind, dataset, ...options });
  };
  return (
    <form className="job-form" onSubmit={submit}>
      <fieldset className="kinds">
        <legend>What is to be done</legend>
        {KINDS.map((one) => (
          <label key={one}>
            <input type="radio" name="kind" checked={one === kind} onChange={() => onChoose("kind", one)} />{" "}
            {one}
          </label>
        ))}
      </fieldset>
      <p>{DONE[kind]}</p>
      {kind === "train" && !about.has_sidecar ? (
        <p className="quiet">
          This server was told of no sidecar: the job waits for a worker that has one (
          <code>--sidecar URL</code>).
        </p>
      ) : null}
      <label className="field">
        Dataset
        <select required value={dataset} onChange={(event) => onChoose("dataset", event.target.value)}>
          <option value="">choose one</option>
          {datasets.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      {fields.map((field) => (
        <OptionField
          key={field.name}
          field={field}
          value={typed[field.name] ?? ""}
          known={known[field.name]}
          fault={faultOf(faults, field.name)}
          onChange={(value) => setTyped((before) => ({ ...before, [field.name]: value }))}
        />
      ))}
      {start.error ? <ProblemBox error={start.error} /> : null}
      <div className="row">
        <button type="submit" className="primary" disabled={start.isPending || about.read_only}>
          {start.isPending ? "Starting …" : "Start the job"}
        </button>
        {about.read_only ? <span>This server only reads.</span> : null}
      </div>
      <p className="quiet">The same on the command line:</p>
      <Command text={commandOf(kind, dataset, fields, options)} />
    </form>
  );
}

/** Starts a job; the same job asked for again, after an answer that was lost, is the one that there is. */
function useStart() {
  const [, navigate] = useLocation();
  const queries = useQueryClient();
  const sent = useRef({ body: "", key: "" });
  return useMutation({
    mutationFn: (asked: Record<string, unknown>) => {
      const body = JSON.stringify(asked);
      if (sent.current.body !== body) sent.current = { body, key: newKey() };
      return answered(
        client.POST("/v1/training/jobs", {
          params: { header: { "idempotency-key": sent.current.key } },
          body: asked as unknown as Schemas["Prepare"],
        }),
      );
    },
    onSuccess: (job) => {
      void queries.invalidateQueries({ queryKey: ["jobs"] });
      navigate(jobPath(job.id));
    },
  });
}

/** Names that fields can be, which the server knows. */
function useKnown(kind: JobKind, about: Schemas["About"]): Record<string, readonly string[]> {
  const trained = useJobs({ kind: "train", status: "done" });
  const strategies = usePlugins("strategies");
  return {
    ...(kind === "train" ? {} : { model: about.models }), // a training names one of the sidecar's, which has its own
    to: about.exporters,
    strategy: strategies.map(({ name }) => name),
    job: (trained.data?.pages ?? []).flatMap((page) => page.jobs.map(({ id }) => id)),
  };
}

function commandOf(
  kind: JobKind,
  dataset: string,
  fields: readonly Field[],
  options: Record<string, string | number>,
) {
  const set = fields
    .filter(({ name }) => options[name] !== undefined)
    .map(({ name }) => `--set ${name}=${shellWord(String(options[name]))}`);
  return ["turnmill job start", dataset ? shellWord(dataset) : "DATASET", `--kind ${kind}`, ...set].join(" ");
}
