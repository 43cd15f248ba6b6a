import { type ReactNode, useEffect, useRef } from "react";

interface PageProps {
  title: string;
  /** Beside the heading: what can be done here. */
  actions?: ReactNode;
  children: ReactNode;
}

/** A screen: its heading, which is also the document's title, what can be done, and what there is. */
export function Page({ title, actions, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · turnmill`;
  }, [title]);
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  return (
    <>
      <header className="page-head row apart">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {actions ? <div className="row">{actions}</div> : null}
      </header>
      {children}
    </>
  );
}
