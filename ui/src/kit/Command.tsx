import { useState } from "react";

/** A command line, to be copied. */
export function Command({ text }: { text: string }) {
  const [said, setSaid] = useState("Copy");
  const copy = () =>
    navigator.clipboard
      .writeText(text)
      .then(() => setSaid("Copied"))
      .catch(() => setSaid("Select it to copy"));
  return (
    <div className="command">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long line scrolls, which a keyboard must be able to do */}
      <code tabIndex={0}>{text}</code>
      <button type="button" onClick={copy} aria-label={`Copy: ${text}`}>
        <span aria-live="polite">{said}</span>
      </button>
    </div>
  );
}

/** A word as a POSIX shell takes it. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}
