import { useQuery } from "@tanstack/react-query";
import { answered, client, type Schemas } from "@/api/client";
import { signOut, useSession } from "@/api/session";
import { Asked } from "@/kit/Asked";
import { Badge } from "@/kit/Badge";
import { Facts } from "@/kit/Facts";
import { bytes, when, whole } from "@/kit/numbers";
import { Page } from "@/kit/Page";
import "./settings.css";
import { Tokens } from "./Tokens";

const LOOK_MS = 10_000;

/** What the server is, how it fares, and who may do what. */
export default function Settings() {
  const about = useQuery({
    queryKey: ["about"],
    queryFn: () => answered(client.GET("/v1/training/about")),
  });
  return (
    <Page title="Settings">
      <Asked query={about} what="the server">
        {(found) => (
          <>
            <Access about={found} />
            <Health />
            <Server about={found} />
            {found.scope === "admin" ? <Tokens about={found} /> : null}
          </>
        )}
      </Asked>
    </Page>
  );
}

function Access({ about }: { about: Schemas["About"] }) {
  const { token } = useSession();
  const { token: used } = about;
  return (
    <section aria-label="Access">
      <h2>Access</h2>
      <Facts
        of={{
          Token: used ? used.name : "none is needed: whoever reaches this address may do everything",
          Scope: about.scope,
          Expires: used ? (used.expires_at ? when(used.expires_at) : "never") : null,
          Changes: about.read_only ? (
            <Badge tone="warn">read-only</Badge>
          ) : (
            "taken, where the scope allows them"
          ),
        }}
      />
      {token ? (
        <button type="button" onClick={signOut}>
          Sign out of this tab
        </button>
      ) : null}
    </section>
  );
}

const SIDECAR: Record<Schemas["Health"]["sidecar"], string> = {
  none: "the server was told of none: train jobs need `turnmill serve --sidecar URL`",
  ready: "takes jobs",
  down: "does not answer",
  refuses: "does not know the server's secret",
};

function Health() {
  const health = useQuery({
    queryKey: ["health"],
    queryFn: () => answered(client.GET("/v1/training/about/health")),
    refetchInterval: LOOK_MS,
  });
  return (
    <section aria-label="Health">
      <h2>Health</h2>
      <Asked query={health} what="how the server fares">
        {({ shelf, sidecar, queue, free_bytes }) => (
          <Facts
            of={{
              Database: <Badge tone="good">answers</Badge>,
              Shelf: <Badge tone={shelf === "ok" ? "good" : "warn"}>{shelf.replaceAll("-", " ")}</Badge>,
              Sidecar: (
                <>
                  <Badge tone={sidecar === "ready" ? "good" : sidecar === "none" ? "neutral" : "bad"}>
                    {sidecar}
                  </Badge>{" "}
                  {SIDECAR[sidecar]}
                </>
              ),
              Jobs: `${whole(queue.queued)} wait, ${whole(queue.running)} run, ${whole(queue.lost)} lost their worker`,
              Workers: `${whole(queue.workers)} at work; idle ones are not known`,
              "Waiting since": queue.waiting_since ? when(queue.waiting_since) : null,
              "Last job begun": queue.last_taken_at ? when(queue.last_taken_at) : "never",
              "Free on the jobs' disk": free_bytes === null ? null : bytes(free_bytes),
            }}
          />
        )}
      </Asked>
    </section>
  );
}

function Server({ about }: { about: Schemas["About"] }) {
  return (
    <section aria-label="Server">
      <h2>Server</h2>
      <Facts
        of={{
          Version: `turnmill ${about.version}`,
          Database: about.database,
          Models: about.models.join(", ") || "none: `turnmill serve --models NAME=DIR`",
          Templates: about.templates.join(", "),
          Exporters: about.exporters.join(", "),
          "Largest data file": bytes(about.limits.max_bytes),
        }}
      />
    </section>
  );
}
