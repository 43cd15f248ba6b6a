import * as Ariakit from "@ariakit/react";
import type { ReactElement } from "react";

/** More about an element, while the pointer or the focus is on it. */
export function Tooltip({ text, children }: { text: string; children: ReactElement }) {
  return (
    <Ariakit.TooltipProvider timeout={200}>
      <Ariakit.TooltipAnchor render={children} />
      <Ariakit.Tooltip className="tooltip">{text}</Ariakit.Tooltip>
    </Ariakit.TooltipProvider>
  );
}
