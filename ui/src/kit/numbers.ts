/** Numbers, sizes and times as the page says them, whatever the browser's language: the page is in English. */

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

export function whole(value: number): string {
  return WHOLE.format(value);
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(value: number): string {
  const power = value < 1 ? 0 : Math.min(Math.floor(Math.log2(value) / 10), UNITS.length - 1);
  return `${SHORT.format(value / 1024 ** power)} ${UNITS[power]}`;
}

export function share(part: number, all: number): string {
  return all === 0 ? "–" : `${SHORT.format((100 * part) / all)} %`;
}

const WHEN = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });

export function when(moment: string): string {
  return WHEN.format(new Date(moment));
}

export function duration(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60
    ? `${minutes} min ${Math.round(seconds % 60)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
