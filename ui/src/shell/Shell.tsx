import { Suspense, useEffect, useMemo, useState } from "react";
import { Link, Route, Switch, useLocation } from "wouter";
import { Busy } from "@/kit/Asked";
import { Page } from "@/kit/Page";
import { handleKey, useShortcuts } from "@/kit/shortcuts";
import { PLACES, ROUTES } from "@/routes";
import { Failure } from "./Failure";
import { Palette } from "./Palette";
import { ShortcutSheet } from "./ShortcutSheet";
import { SignIn } from "./SignIn";
import { ThemeChoice } from "./ThemeChoice";

type Over = "palette" | "sheet" | null;

const SCREENS_LATER_MS = 2_000;

/** The whole page: where one can go, the screen one is on, and the windows over it. */
export function Shell() {
  const [over, setOver] = useState<Over>(null);
  const close = () => setOver(null);
  useKeys(setOver);
  useEffect(fetchScreensLater, []);
  return (
    <>
      <button type="button" className="skip" onClick={focusContent}>
        Skip to the content
      </button>
      <Bar onPalette={() => setOver("palette")} onSheet={() => setOver("sheet")} />
      <main id="content" tabIndex={-1}>
        <Screens />
      </main>
      <Palette isOpen={over === "palette"} onClose={close} />
      <ShortcutSheet isOpen={over === "sheet"} onClose={close} />
      <SignIn />
    </>
  );
}

function Screens() {
  const [location] = useLocation();
  return (
    <Failure key={location}>
      <Suspense fallback={<Busy what="the screen" />}>
        <Switch>
          {ROUTES.map(({ path, Screen }) => (
            <Route key={path} path={path}>
              <Screen />
            </Route>
          ))}
          <Route>
            <Page title="There is no such page">
              <p>
                <Link href="/">Go to the datasets</Link>, or press <kbd>Ctrl</kbd>+<kbd>K</kbd> and say where
                to.
              </p>
            </Page>
          </Route>
        </Switch>
      </Suspense>
    </Failure>
  );
}

function Bar({ onPalette, onSheet }: { onPalette: () => void; onSheet: () => void }) {
  const [location] = useLocation();
  return (
    <header className="bar">
      <Link href="/" className="brand">
        turnmill
      </Link>
      <nav aria-label="Main">
        {PLACES.map(({ path, title, covers }) => (
          <Link key={path} href={path} aria-current={covers.test(location) ? "page" : undefined}>
            {title}
          </Link>
        ))}
      </nav>
      <div className="row bar-end">
        <button type="button" onClick={onPalette} aria-keyshortcuts="Control+K">
          Go to … <kbd>Ctrl K</kbd>
        </button>
        <ThemeChoice />
        <button type="button" onClick={onSheet} aria-label="Keyboard shortcuts">
          ?
        </button>
      </div>
    </header>
  );
}

/** Fetches the code of all screens once the first one has long been shown. */
function fetchScreensLater(): () => void {
  const timer = setTimeout(() => {
    for (const { load } of ROUTES) load().catch(() => undefined); // it is tried again when somebody goes there
  }, SCREENS_LATER_MS);
  return () => clearTimeout(timer);
}

/** `Ctrl+K` anywhere, and the shortcuts in force elsewhere than in a field. */
function useKeys(setOver: (over: Over) => void): void {
  useShortcuts(
    useMemo(() => [{ key: "?", what: "Show these shortcuts", run: () => setOver("sheet") }], [setOver]),
  );
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        setOver("palette");
      } else handleKey(event);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [setOver]);
}

function focusContent(): void {
  document.getElementById("content")?.focus();
}
