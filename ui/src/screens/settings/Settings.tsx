import { useQuery } from "@tanstack/react-query";
import { answered, client, type Schemas } from "@/api/client";
import { signOut, useSession } from "@/api/session";
import { Asked } from "@/kit/Asked";
import { Badge, type Tone } from "@/kit/Badge";
import { Facts } from "@/kit/Facts";
import { bytes, when, whole } from "@/kit/numbers";
import { Page } from "@/kit/Page";
import { AccessTokens } from "./AccessTokens";

const HEALTH_MS = 10_000;

/** What the server is and how it fares, and who may ask it for what. */
export default function Settings() {
  const about = useQuery({ queryKey: ["about"], queryFn: () => answered(client.GET("/v1/training/about")) });
  return (
    <Page title="Settings">
      <Asked query={about} what="what the server is">
        {(found) => (
          <>
            <Server about={found} />
            <Health />
            <Session about={found} />
            {found.scope === "admin" ? <AccessTokens about={found} /> : null}
          </>
        )}
      </Asked>
    </Page>
  );
}

function Server({ about }: { about: Schemas["About"] }) {
  return (
    <section aria-label="Server">
      <h2>Server</h2>
      {about.read_only ? (
        <p>
          <Badge tone="warn">read-only</Badge> It only reads: whatever would change anything is refused.
        </p>
      ) : null}
      <Facts
        of={{
          Version: about.version,
          Database: about.database,
          Models: about.models.join(", ") || "none; `turnmill serve --models NAME=DIRECTORY` gives it some",
          Templates: about.templates.join(", "),
          Exporters: about.exporters.join(", "),
          "A data file has at most": bytes(about.limits.max_bytes),
          "Uploads at once": whole(about.limits.max_uploads),
        }}
      />
    </section>
  );
}

const SHELF: Record<string, Tone> = { ok: "good", "not-there-yet": "neutral", "not-readable": "bad" };
const SIDECAR: Record<string, Tone> = { ready: "good", none: "neutral", down: "bad", refuses: "bad" };

function Health() {
  const health = useQuery({
    queryKey: ["health"],
    queryFn: () => answered(client.GET("/v1/training/about/health")),
    refetchInterval: HEALTH_MS,
  });
  return (
    <section aria-label="Health">
      <h2>Health</h2>
      <Asked query={health} what="how it fares">
        {({ shelf, sidecar, queue, free_bytes }) => (
          <Facts
            of={{
              Shelf: <Badge tone={SHELF[shelf] ?? "neutral"}>{shelf}</Badge>,
              Sidecar: <Badge tone={SIDECAR[sidecar] ?? "neutral"}>{sidecar}</Badge>,
              Jobs: `${whole(queue.queued)} queued, ${whole(queue.running)} running, ${whole(queue.lost)} lost`,
              "Workers that have a job": whole(queue.workers),
              "A job was last begun": queue.last_taken_at ? when(queue.last_taken_at) : "never",
              "Free on the disk of jobs": free_bytes === null ? null : bytes(free_bytes),
            }}
          />
        )}
      </Asked>
    </section>
  );
}

function Session({ about }: { about: Schemas["About"] }) {
  const { token } = useSession();
  return (
    <section aria-label="Your access">
      <h2>Your access</h2>
      {about.token ? (
        <Facts
          of={{
            Token: about.token.name,
            Scope: about.token.scope,
            Ends: about.token.expires_at ? when(about.token.expires_at) : "when it is revoked",
          }}
        />
      ) : (
        <p>No access token was ever made: whoever reaches this server may do anything.</p>
      )}
      {token ? (
        <button type="button" onClick={leave}>
          Sign out
        </button>
      ) : null}
    </section>
  );
}

/** Nothing that was fetched with the token stays in the tab. */
function leave(): void {
  signOut();
  window.location.reload();
}
