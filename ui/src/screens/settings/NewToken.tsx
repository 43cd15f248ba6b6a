import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { answered, client, type Schemas } from "@/api/client";
import { ProblemBox } from "@/kit/ProblemBox";

interface NewTokenProps {
  /** It would be the server's first one, which closes the server. */
  isFirst: boolean;
  onMade: (token: Schemas["NewToken"]) => void;
}

const DAY_S = 86_400;
const DAYS = [1, 7, 30, 90, 365] as const;
const SCOPES = ["read", "write", "admin"] as const;

/** Makes an access token. */
export function NewToken({ isFirst, onMade }: NewTokenProps) {
  const [name, setName] = useState("");
  const [scope, setScope] = useState<(typeof SCOPES)[number]>("read");
  const [days, setDays] = useState("90");
  const make = useMutation({
    mutationFn: () =>
      answered(
        client.POST("/v1/training/access-tokens", {
          body: isFirst
            ? { name, scope: "admin" }
            : { name, scope, ...(days ? { lasts_s: Number(days) * DAY_S } : {}) },
        }),
      ),
    onSuccess: (token) => {
      setName("");
      onMade(token);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!make.isPending) make.mutate();
  };
  return (
    <form className="token-form" onSubmit={submit}>
      <h3>Make a token</h3>
      {isFirst ? (
        <p>
          The first token closes the server: from then on nothing opens without one. It is an admin's, and
          does not expire.
        </p>
      ) : null}
      <div className="row">
        <label>
          Name{" "}
          <input required maxLength={128} value={name} onChange={(event) => setName(event.target.value)} />
        </label>
        {isFirst ? null : (
          <>
            <label>
              Scope{" "}
              <select value={scope} onChange={(event) => setScope(event.target.value as typeof scope)}>
                {SCOPES.map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
            </label>
            <label>
              Lasts{" "}
              <select value={days} onChange={(event) => setDays(event.target.value)}>
                {DAYS.map((one) => (
                  <option key={one} value={one}>
                    {one} days
                  </option>
                ))}
                <option value="">until it is revoked</option>
              </select>
            </label>
          </>
        )}
        <button type="submit" className="primary" disabled={make.isPending}>
          Make the token
        </button>
      </div>
      {make.error ? <ProblemBox error={make.error} /> : null}
    </form>
  );
}
