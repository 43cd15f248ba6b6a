/** The parts of the address that a screen is about. */
import { useParams } from "wouter";

/** A part of the path, such as `name` of `/datasets/:name`, decoded. */
export function usePathPart(part: string): string {
  const found = useParams()[part] ?? "";
  try {
    return decodeURIComponent(found);
  } catch {
    return found; // somebody typed a stray %
  }
}
