/** A real server of tests: `turnmill serve` with a worker, over a shelf of its own. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { cpSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PYTHON = process.env.TURNMILL_PYTHON ?? join(ROOT, ".venv/bin/python");
const ENVIRONMENT = { ...process.env, PYTHONPATH: join(ROOT, "src"), OMP_NUM_THREADS: "1" };
const PATIENCE_MS = 60_000;

/** Runs `python ARGUMENTS`, or `turnmill` with `-m turnmill`, and gives what it printed. */
export function python(...args: string[]): string {
  return execFileSync(PYTHON, args, {
    env: ENVIRONMENT,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
}

let made: string | undefined;

/** The example shelf, which is made once and copied for each server. */
function exampleShelf(): string {
  if (made === undefined) {
    made = mkdtempSync(join(tmpdir(), "turnmill-shelf-"));
    python(join(ROOT, "examples/page/make_shelf.py"), made);
    process.on("exit", () => made && rmSync(made, { recursive: true, force: true }));
  }
  return made;
}

export class Server {
  /** The directory of its database, shelf and jobs. */
  readonly place = mkdtempSync(join(tmpdir(), "turnmill-page-"));
  private process: ChildProcess | undefined;
  private port = 0;

  constructor(private readonly options: readonly string[] = []) {
    cpSync(exampleShelf(), this.place, { recursive: true });
  }

  /** Where it answers, such as `http://127.0.0.1:41234`. */
  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get database(): string {
    return join(this.place, "turnmill.db");
  }

  /** Begin it; where it ran before, at the same place and port. */
  async start(): Promise<this> {
    const log = join(this.place, `server-${Date.now()}.log`);
    const said = openSync(log, "a");
    const models = `tiny=${join(this.place, "models/tiny")}`;
    const args = [
      "-m",
      "turnmill",
      "serve",
      "--database",
      this.database,
      "--models",
      models,
      "--workers",
      "1",
    ];
    this.process = spawn(PYTHON, [...args, "--port", String(this.port), ...this.options], {
      cwd: this.place,
      env: ENVIRONMENT,
      stdio: ["ignore", said, said],
      detached: true, // its workers end with it
    });
    const until = Date.now() + PATIENCE_MS;
    for (;;) {
      const found = /http:\/\/127\.0\.0\.1:(\d+)/.exec(readFileSync(log, "utf8"));
      if (found) {
        this.port = Number(found[1]);
        return this;
      }
      if (this.process.exitCode !== null || Date.now() > until) throw new Error(readFileSync(log, "utf8"));
      await new Promise((passed) => setTimeout(passed, 50));
    }
  }

  /** End it, and its workers. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    const ended = this.process;
    if (ended?.pid === undefined || ended.exitCode !== null || ended.signalCode !== null) return;
    const gone = new Promise((resolve) => ended.once("exit", resolve));
    process.kill(signal === "SIGKILL" ? -ended.pid : ended.pid, signal);
    await gone;
  }

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.place, { recursive: true, force: true });
  }

  turnmill(...args: string[]): string {
    return python("-m", "turnmill", ...args).trim();
  }

  /** A new access token of this server, which is named like its scope. */
  token(scope: "read" | "write" | "admin", ...more: string[]): string {
    return this.turnmill(
      "access-token",
      "new",
      scope,
      "--scope",
      scope,
      "--database",
      this.database,
      ...more,
    );
  }
}
