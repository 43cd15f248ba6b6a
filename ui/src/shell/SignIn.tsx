import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { dismissAsking, signIn, useSession } from "@/api/session";
import { Command } from "@/kit/Command";
import { Dialog } from "@/kit/Dialog";

/** Asks for an access token when the server does; what is on the screen stays where it is. */
export function SignIn() {
  const { asked } = useSession();
  const queries = useQueryClient();
  const [typed, setTyped] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    signIn(typed.trim());
    setTyped("");
    void queries.invalidateQueries();
  };
  return (
    <Dialog title="The server asks for an access token" isOpen={asked !== null} onClose={dismissAsking}>
      <p>{asked}</p>
      <form className="stack" onSubmit={submit}>
        <label htmlFor="token">Access token</label>
        <input
          id="token"
          type="password"
          autoComplete="off"
          required
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
        />
        <small>It is kept until this tab is closed, and sent to this server only.</small>
        <div className="row">
          <button type="submit" className="primary">
            Sign in
          </button>
          <button type="button" onClick={dismissAsking}>
            Not now
          </button>
        </div>
      </form>
      <p>Whoever runs the server makes one:</p>
      <Command text="turnmill access-token new NAME --scope write" />
    </Dialog>
  );
}
