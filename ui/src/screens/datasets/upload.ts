/** Uploads with their progress, which `fetch` does not tell. */
import { placed } from "@/api/places";
import { ApiProblem, problemOf, UNREACHABLE } from "@/api/problem";
import { askForToken, currentSession } from "@/api/session";

export interface Upload {
  done: Promise<void>;
  cancel: () => void;
}

export const CANCELLED = new ApiProblem(
  0,
  "upload-cancelled",
  "The upload was cancelled; nothing was changed.",
);

const FORMATS = ["jsonl", "json", "parquet"];

/** What a file is, by the end of its name; JSON lines where that says nothing. */
export function formatOf(name: string): string {
  return FORMATS.find((format) => name.toLowerCase().endsWith(`.${format}`)) ?? "jsonl";
}

/**
 * Send a file as the dataset that is named like it.
 *
 * @param dialect how its rows say a chat; `auto` tells it from them.
 * @param onProgress is told the share of the file that was sent; at 1 the server checks it.
 */
export function upload(file: File, dialect: string, onProgress: (share: number) => void): Upload {
  const request = new XMLHttpRequest();
  const { token } = currentSession();
  const done = new Promise<void>((resolve, reject) => {
    request.upload.onprogress = ({ loaded, total }) => onProgress(total ? loaded / total : 0);
    request.onload = () => {
      if (request.status < 300) return resolve();
      const problem = problemOf(request.status, parsed(request.responseText));
      if (request.status === 401) askForToken(problem.detail, token);
      reject(problem);
    };
    request.onerror = () => reject(UNREACHABLE);
    request.onabort = () => reject(CANCELLED);
  });
  request.open("POST", placed("/v1/training/datasets"));
  if (token) request.setRequestHeader("Authorization", `Bearer ${token}`);
  const form = new FormData();
  form.append("format", formatOf(file.name));
  form.append("dialect", dialect);
  form.append("file", file);
  request.send(form);
  return { done, cancel: () => request.abort() };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
