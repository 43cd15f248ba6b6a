import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { answered, client, type Schemas } from "@/api/client";
import { signIn } from "@/api/session";
import { Asked } from "@/kit/Asked";
import { Badge, type Tone } from "@/kit/Badge";
import { Command } from "@/kit/Command";
import { Confirm } from "@/kit/Dialog";
import { Head } from "@/kit/Head";
import { when } from "@/kit/numbers";
import { ProblemBox } from "@/kit/ProblemBox";

const SCOPES = ["read", "write", "admin"] as const;
type Scope = (typeof SCOPES)[number];
const DAY_S = 86_400;
const STATES: Record<string, Tone> = { valid: "good", expired: "warn", revoked: "neutral" };

/** Every access token, made and revoked here by an admin. */
export function AccessTokens({ about }: { about: Schemas["About"] }) {
  const tokens = useQuery({
    queryKey: ["access-tokens"],
    queryFn: () => answered(client.GET("/v1/training/access-tokens")),
  });
  return (
    <section aria-label="Access tokens">
      <h2>Access tokens</h2>
      {about.needs_token ? null : (
        <p>
          The first token closes the server to whoever has none. It is an admin's, and this tab is signed in
          with it.
        </p>
      )}
      <MakeToken isFirst={!about.needs_token} isDisabled={about.read_only} />
      <Asked query={tokens} what="the tokens">
        {(found) => (found.tokens.length > 0 ? <Table tokens={found.tokens} /> : null)}
      </Asked>
    </section>
  );
}

function MakeToken({ isFirst, isDisabled }: { isFirst: boolean; isDisabled: boolean }) {
  const [name, setName] = useState("");
  const [scope, setScope] = useState<Scope>("read");
  const [days, setDays] = useState("");
  const queries = useQueryClient();
  const make = useMutation({
    mutationFn: () => {
      const asked = isFirst
        ? { name, scope: "admin" as const, lasts_s: null }
        : { name, scope, lasts_s: days ? Number(days) * DAY_S : null };
      return answered(client.POST("/v1/training/access-tokens", { body: asked }));
    },
    onSuccess: (made) => {
      setName("");
      if (made.closes) signIn(made.secret);
      void queries.invalidateQueries();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    make.mutate();
  };
  return (
    <>
      <form className="row" onSubmit={submit}>
        <label>
          Name <input required value={name} onChange={(event) => setName(event.target.value)} />
        </label>
        {isFirst ? null : (
          <>
            <label>
              Scope{" "}
              <select value={scope} onChange={(event) => setScope(event.target.value as Scope)}>
                {SCOPES.map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
            </label>
            <label>
              Days{" "}
              <input
                type="number"
                min={1}
                max={36_500}
                placeholder="no end"
                value={days}
                onChange={(event) => setDays(event.target.value)}
              />
            </label>
          </>
        )}
        <button type="submit" disabled={isDisabled || make.isPending}>
          Make a token
        </button>
      </form>
      {make.error ? <ProblemBox error={make.error} /> : null}
      {make.data ? (
        <div className="panel" role="status">
          <p>This is told once, and never again:</p>
          <Command text={make.data.secret} />
        </div>
      ) : null}
    </>
  );
}

function Table({ tokens }: { tokens: readonly Schemas["Token"][] }) {
  const [asking, setAsking] = useState<Schemas["Token"] | null>(null);
  const queries = useQueryClient();
  const revoke = useMutation({
    mutationFn: (id: string) =>
      answered(
        client.POST("/v1/training/access-tokens/{token_id}/revoke", { params: { path: { token_id: id } } }),
      ),
    onSettled: () => {
      setAsking(null);
      void queries.invalidateQueries({ queryKey: ["access-tokens"] });
    },
  });
  return (
    <div className="scroll-x">
      <table>
        <Head columns={["Token", "Scope", "State", "Made", "Ends", "Last used", ""]} />
        <tbody>
          {tokens.map((token) => (
            <tr key={token.id}>
              <th scope="row">{token.name}</th>
              <td>{token.scope}</td>
              <td>
                <Badge tone={STATES[token.state] ?? "neutral"}>{token.state}</Badge>
              </td>
              <td>{when(token.created_at)}</td>
              <td>{token.expires_at ? when(token.expires_at) : "–"}</td>
              <td>{token.last_used_at ? when(token.last_used_at) : "never"}</td>
              <td>
                {token.state === "valid" ? (
                  <button type="button" className="danger" onClick={() => setAsking(token)}>
                    Revoke<span className="visually-hidden"> {token.name}</span>
                  </button>
                ) : null}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {revoke.error ? <ProblemBox error={revoke.error} /> : null}
      <Confirm
        title={`Revoke ${asking?.name ?? "the token"}?`}
        isOpen={asking !== null}
        action="Revoke it"
        onConfirm={() => asking && revoke.mutate(asking.id)}
        onClose={() => setAsking(null)}
      >
        <p>Whoever uses it is refused within a second. It cannot be made valid again.</p>
      </Confirm>
    </div>
  );
}
