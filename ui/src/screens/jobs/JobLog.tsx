import { useLayoutEffect, useRef } from "react";
import { Command } from "@/kit/Command";
import { useLog } from "./useLog";

/** What a job's commands said; while it grows, its end stays in sight for whoever looks at the end. */
export function JobLog({ id }: { id: string }) {
  const log = useLog(id);
  const box = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is the text that grows
  useLayoutEffect(() => {
    if (box.current && isAtEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [log.text]);
  const onScroll = () => {
    const { scrollTop = 0, clientHeight = 0, scrollHeight = 0 } = box.current ?? {};
    isAtEnd.current = scrollTop + clientHeight >= scrollHeight - 8;
  };
  return (
    <section aria-label="Log">
      <h2>Log</h2>
      {log.isCut ? (
        <>
          <p>Only the end is shown. All of it:</p>
          <Command text={`turnmill job logs ${id} --server ${window.location.origin}/v1`} />
        </>
      ) : null}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by a keyboard */}
      <pre ref={box} className="job-log" tabIndex={0} onScroll={onScroll}>
        {log.text || (log.isWhole ? "It said nothing." : "It has said nothing yet.")}
      </pre>
      {log.isReconnecting ? <p role="status">Reconnecting: the server does not answer …</p> : null}
    </section>
  );
}
