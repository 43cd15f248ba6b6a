import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answered, client, type Schemas } from "@/api/client";
import { signIn } from "@/api/session";
import { Asked } from "@/kit/Asked";
import { Badge } from "@/kit/Badge";
import { Command } from "@/kit/Command";
import { Confirm } from "@/kit/Dialog";
import { Empty } from "@/kit/Empty";
import { when } from "@/kit/numbers";
import { ProblemBox } from "@/kit/ProblemBox";
import { NewToken } from "./NewToken";

type Token = Schemas["Token"];
const TONES = { valid: "good", expired: "warn", revoked: "bad" } as const;

/** Every access token of the server, for its admins: made, listed and revoked. */
export function Tokens({ about }: { about: Schemas["About"] }) {
  const queries = useQueryClient();
  const [made, setMade] = useState<Schemas["NewToken"] | null>(null);
  const tokens = useQuery({
    queryKey: ["tokens"],
    queryFn: () => answered(client.GET("/v1/training/access-tokens")),
  });
  const onMade = (token: Schemas["NewToken"]) => {
    setMade(token);
    if (token.closes) signIn(token.secret); // or nothing would open any more, this page included
    void queries.invalidateQueries();
  };
  return (
    <section aria-label="Access tokens">
      <h2>Access tokens</h2>
      {made ? <Secret token={made} /> : null}
      <Asked query={tokens} what="the access tokens">
        {({ tokens: found }) =>
          found.length === 0 ? (
            <Empty title="No access token was made: the server is open to whoever reaches it." />
          ) : (
            <div className="scroll-x">
              <table>
                <thead>
                  <tr>
                    {["Name", "Scope", "State", "Made", "Expires", "Last used", ""].map((name) => (
                      <th scope="col" key={name}>
                        {name}
                      </th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {found.map((token) => (
                    <Line key={token.id} token={token} isOwn={token.name === about.token?.name} />
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Asked>
      {about.read_only ? null : <NewToken isFirst={!about.needs_token} onMade={onMade} />}
    </section>
  );
}

function Secret({ token }: { token: Schemas["NewToken"] }) {
  return (
    <div className="panel" role="status">
      <p>
        <strong>{token.name}</strong> was made. Copy it now: it is never shown again.
        {token.closes ? " From now on nothing opens without a token; this tab uses this one." : ""}
      </p>
      <Command text={token.secret} />
    </div>
  );
}

function Line({ token, isOwn }: { token: Token; isOwn: boolean }) {
  const queries = useQueryClient();
  const [isAsking, setAsking] = useState(false);
  const revoke = useMutation({
    mutationFn: () =>
      answered(
        client.POST("/v1/training/access-tokens/{token_id}/revoke", {
          params: { path: { token_id: token.id } },
        }),
      ),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["tokens"] }),
  });
  const end = () => {
    setAsking(false);
    revoke.mutate();
  };
  return (
    <tr>
      <th scope="row">
        {token.name}
        {isOwn ? " (yours)" : ""}
      </th>
      <td>{token.scope}</td>
      <td>
        <Badge tone={TONES[token.state]}>{token.state}</Badge>
      </td>
      <td>{when(token.created_at)}</td>
      <td>{token.expires_at ? when(token.expires_at) : "never"}</td>
      <td>{token.last_used_at ? when(token.last_used_at) : "never"}</td>
      <td>
        {token.state === "valid" ? (
          <button
            type="button"
            className="danger"
            onClick={() => setAsking(true)}
            disabled={revoke.isPending}
          >
            Revoke<span className="visually-hidden"> {token.name}</span>
          </button>
        ) : null}
        {revoke.error ? <ProblemBox error={revoke.error} /> : null}
        <Confirm
          title={`Revoke ${token.name}?`}
          isOpen={isAsking}
          action="Revoke it"
          onConfirm={end}
          onClose={() => setAsking(false)}
        >
          <p>
            Whoever uses it is refused within a second.
            {isOwn ? " It is the one that you are signed in with." : ""}
          </p>
        </Confirm>
      </td>
    </tr>
  );
}
