import { useState } from "react";
import { setTheme, theme, type Theme } from "../theme";

export function ThemeSwitch() {
  const [chosen, setChosen] = useState(theme);
  return (
    <select
      aria-label="Colours"
      title="Colours"
      value={chosen}
      onChange={(event) => {
        const next = event.target.value as Theme;
        setTheme(next);
        setChosen(next);
      }}
    >
      <option value="system">System</option>
      <option value="light">Light</option>
      <option value="dark">Dark</option>
    </select>
  );
}
