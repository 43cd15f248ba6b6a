import { useQueryClient } from "@tanstack/react-query";
import { type DragEvent, type ReactNode, useRef, useState } from "react";
import { Link } from "wouter";
import { usePlugins } from "@/api/usePlugins";
import { ProblemBox } from "@/kit/ProblemBox";
import { datasetPath } from "@/routes";
import { type Upload, upload } from "./upload";

interface Sent {
  id: number;
  file: File;
  share: number;
  state: "sending" | "done" | "failed";
  error?: unknown;
  cancel: () => void;
}

/** Files that are dropped on what is inside, or chosen, are sent; each says how far it is and what came of it. */
export function Uploads({ isAllowed, children }: { isAllowed: boolean; children: ReactNode }) {
  const [dialect, setDialect] = useState("auto");
  const { uploads, send, dismiss } = useUploads(dialect);
  const [isOver, setOver] = useState(false);
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    if (isAllowed) send(event.dataTransfer.files);
  };
  const over = (event: DragEvent) => {
    event.preventDefault();
    setOver(isAllowed);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button inside does the same with a keyboard
    <div
      className={isOver ? "drop over" : "drop"}
      onDragOver={over}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      {isAllowed ? <Choose dialect={dialect} onDialect={setDialect} onFiles={send} /> : null}
      {uploads.map((one) => (
        <OneUpload
          key={one.id}
          sent={one}
          onDismiss={() => dismiss(one.id)}
          onRetry={() => send([one.file], one.id)}
        />
      ))}
      {children}
    </div>
  );
}

interface ChooseProps {
  dialect: string;
  onDialect: (dialect: string) => void;
  onFiles: (files: FileList) => void;
}

function Choose({ dialect, onDialect, onFiles }: ChooseProps) {
  const dialects = usePlugins("dialects");
  return (
    <div className="row choosing">
      <label className="button primary choose">
        Upload a file …
        <input
          type="file"
          className="visually-hidden"
          multiple
          accept=".jsonl,.json,.parquet"
          onChange={(event) => {
            if (event.target.files) onFiles(event.target.files);
            event.target.value = "";
          }}
        />
      </label>
      <label>
        Dialect{" "}
        <select value={dialect} onChange={(event) => onDialect(event.target.value)}>
          <option value="auto">told from the rows</option>
          {dialects.map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <span className="quiet">
        or drop it here: JSON lines, JSON or Parquet; it is checked before it is there.
      </span>
    </div>
  );
}

interface OneUploadProps {
  sent: Sent;
  onDismiss: () => void;
  onRetry: () => void;
}

function OneUpload({ sent, onDismiss, onRetry }: OneUploadProps) {
  const { file, share, state, error, cancel } = sent;
  const name = file.name.replace(/\.[^.]*$/, "");
  return (
    <section className="panel upload" aria-label={`Upload of ${file.name}`}>
      <div className="row apart">
        <strong>{file.name}</strong>
        {state === "sending" ? (
          <button type="button" onClick={cancel}>
            Cancel
          </button>
        ) : (
          <button type="button" onClick={onDismiss}>
            Dismiss
          </button>
        )}
      </div>
      {state === "sending" ? (
        <>
          <progress value={share} aria-label={`${file.name} sent`} />
          <p role="status">
            {share < 1 ? `${Math.floor(100 * share)} % sent` : "Sent; it is being checked …"}
          </p>
        </>
      ) : null}
      {state === "done" ? (
        <p role="status">
          It is on the shelf: <Link href={datasetPath(name)}>{name}</Link>
        </p>
      ) : null}
      {state === "failed" ? <ProblemBox error={error} onRetry={onRetry} /> : null}
    </section>
  );
}

function useUploads(dialect: string) {
  const [uploads, setUploads] = useState<readonly Sent[]>([]);
  const queries = useQueryClient();
  const next = useRef(0);
  const dismiss = (id: number) => setUploads((before) => before.filter((one) => one.id !== id));
  const change = (id: number, what: Partial<Sent>) =>
    setUploads((before) => before.map((one) => (one.id === id ? { ...one, ...what } : one)));
  const start = (file: File) => {
    const id = next.current++;
    const { done, cancel }: Upload = upload(file, dialect, (share) => change(id, { share }));
    setUploads((before) => [...before, { id, file, share: 0, state: "sending", cancel }]);
    done.then(
      () => {
        change(id, { state: "done" });
        void queries.invalidateQueries({ queryKey: ["datasets"] });
      },
      (error: unknown) => change(id, { state: "failed", error }),
    );
  };
  const send = (files: Iterable<File>, instead?: number) => {
    if (instead !== undefined) dismiss(instead);
    for (const file of files) start(file);
  };
  return { uploads, send, dismiss };
}
