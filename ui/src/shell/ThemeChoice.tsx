import { THEMES, type Theme, useTheme } from "./theme";

export function ThemeChoice() {
  const [theme, choose] = useTheme();
  return (
    <select aria-label="Theme" value={theme} onChange={(event) => choose(event.target.value as Theme)}>
      {THEMES.map((one) => (
        <option key={one} value={one}>
          {one}
        </option>
      ))}
    </select>
  );
}
