/** How a token is shown: white space that can be seen, bytes that are no characters as hex. */

const SEEN: Record<string, string> = {
  " ": "␣",
  "\n": "↵",
  "\t": "⇥",
  "\r": "␍",
  "\u00a0": "⍽",
  "\u200b": "⟡",
};
const HIDDEN = /[ \n\t\r\u00a0\u200b]/g;
/** Control characters, formats and marks without a width of their own: each is shown by its number. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\u2028\u2029]/gu;
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\u{1f000}-\u{1faff}]/u;
const MOST = 48;

/** Text with white space that can be seen; spaces stay as they are where they stand between words of a text. */
export function visible(text: string, spaces: "seen" | "kept" = "seen"): string {
  return text
    .replace(HIDDEN, (found) => (found === " " && spaces === "kept" ? found : (SEEN[found] ?? found)))
    .replace(UNSEEN, (found) => `\\u{${found.codePointAt(0)?.toString(16)}}`);
}

/** What a token shows: its text, of a long one the beginning. */
export function shownToken(text: string, bytes: string | undefined): string {
  if (bytes !== undefined) return shownBytes(bytes);
  const shown = visible(text);
  return shown.length > MOST ? `${shown.slice(0, MOST - 1)}…` : shown || "∅";
}

/** Bytes in hex as text: `20c3` is `␣\xc3`. */
export function shownBytes(hex: string): string {
  const pairs = hex.match(/../g) ?? [];
  return pairs
    .map((pair) => {
      const byte = Number.parseInt(pair, 16);
      return byte < 0x80 ? visible(String.fromCharCode(byte)) : `\\x${pair}`;
    })
    .join("");
}

/** The width of a shown token, in characters of the usual width. */
export function shownLength(text: string): number {
  const length = Math.min(text.length, MOST);
  return WIDE.test(text) ? 2 * length : Math.max(1, length);
}
