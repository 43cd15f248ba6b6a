import type { ReactNode } from "react";
import { Command } from "./Command";

interface EmptyProps {
  title: string;
  /** The command that would put something here. */
  command?: string;
  children?: ReactNode;
}

/** There is nothing here, and what would change that. */
export function Empty({ title, command, children }: EmptyProps) {
  return (
    <div className="empty">
      <p>
        <strong>{title}</strong>
      </p>
      {children}
      {command ? <Command text={command} /> : null}
    </div>
  );
}
