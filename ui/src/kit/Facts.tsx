import { Fragment, type ReactNode } from "react";

/** Names and values; what has no value (null, undefined) is left out. */
export function Facts({ of }: { of: Record<string, ReactNode> }) {
  const told = Object.entries(of).filter(([, value]) => value !== null && value !== undefined);
  return (
    <dl className="facts">
      {told.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}
