/** Light, dark, or as the system says. */
import { useState } from "react";

const KEY = "turnmill-theme";
export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

function stored(): Theme {
  const found = localStorage.getItem(KEY);
  return THEMES.find((one) => one === found) ?? "system";
}

export function applyTheme(theme: Theme = stored()): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState(stored);
  const choose = (next: Theme) => {
    localStorage.setItem(KEY, next);
    applyTheme(next);
    setTheme(next);
  };
  return [theme, choose];
}
