import { asProblem } from "@/api/problem";

interface ProblemBoxProps {
  error: unknown;
  /** Tries the same again. */
  onRetry?: () => void;
}

const WHAT_TO_DO: Record<string, string> = {
  "server-unreachable": "Nothing that you entered is lost. Start the server again, then retry.",
  "token-missing": "Sign in with an access token; `turnmill access-token new` makes one.",
  "token-not-valid": "Sign in with another access token; `turnmill access-token new` makes one.",
  "scope-too-small": "Sign in with a token of a wider scope.",
  "read-only": "This server only reads: start it without --read-only to change anything.",
  "database-unavailable": "The server's database does not answer; `turnmill serve` says why in its log.",
  "shelf-not-readable": "The server cannot read its shelf: look at the directory that it was started with.",
};

/** What went wrong, where, and what to do about it. */
export function ProblemBox({ error, onRetry }: ProblemBoxProps) {
  const problem = asProblem(error);
  const todo = WHAT_TO_DO[problem.code];
  return (
    <section className="problem" role="alert">
      <h2>{problem.status === 0 ? "No answer" : `Refused (${problem.status})`}</h2>
      <p>{problem.detail}</p>
      {problem.faults.length > 0 ? (
        <ul>
          {problem.faults.map((fault) => (
            <li key={`${fault.file}:${fault.line}:${fault.at}:${fault.error}`}>
              {[fault.file, fault.line && `line ${fault.line}`, fault.at].filter(Boolean).join(", ")}:{" "}
              {fault.error}
            </li>
          ))}
        </ul>
      ) : null}
      {todo ? <p>{todo}</p> : null}
      <div className="row">
        <code>{problem.code}</code>
        {onRetry ? (
          <button type="button" onClick={onRetry}>
            Try again
          </button>
        ) : null}
      </div>
    </section>
  );
}
