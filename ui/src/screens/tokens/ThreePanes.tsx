import * as Ariakit from "@ariakit/react";
import { type ReactNode, useEffect, useState, useSyncExternalStore } from "react";
import { Empty } from "@/kit/Empty";
import type { ReadConversation } from "../conversation/row";
import { ChatPane } from "./ChatPane";
import { CountsTable } from "./CountsTable";
import { Cursor, CursorContext } from "./cursor";
import { useMarkClasses } from "./Legend";
import { TextPane, TokenPane } from "./ReadingPanes";
import type { Reading } from "./reading";
import { Spoken } from "./Spoken";
import { useTokenKeys } from "./useTokenKeys";
import { WhyPanel } from "./WhyPanel";

interface ThreePanesProps {
  reading: Reading;
  conversation: ReadConversation | null;
}

/** Conversation, text and tokens, in which one cursor moves. */
export function ThreePanes({ reading, conversation }: ThreePanesProps) {
  const [cursor] = useState(() => new Cursor());
  const isNarrow = useIsNarrow();
  const marks = useMarkClasses();
  useTokenKeys(reading, cursor);
  useEffect(() => {
    // the tokens of another template are others: the cursor stays with the message
    cursor.choose({ position: null, message: cursor.active.message }, "keys");
    return () => void reading;
  }, [cursor, reading]);
  const panes: Record<string, ReactNode> = {
    Conversation: conversation ? (
      <ChatPane conversation={conversation} reading={reading} />
    ) : (
      <Empty title="The row cannot be shown as a conversation." />
    ),
    Text: <TextPane reading={reading} />,
    Tokens: reading.hasTokens ? (
      <TokenPane reading={reading} />
    ) : (
      <Empty
        title="A template alone gives text: choose a model to see tokens."
        command="turnmill serve --models NAME=DIRECTORY"
      />
    ),
  };
  return (
    <CursorContext value={cursor}>
      <div className={`viewer ${marks}`}>
        {isNarrow ? <Tabbed panes={panes} /> : <Beside panes={panes} />}
        <aside className="viewer-side">
          <WhyPanel reading={reading} />
          <CountsTable reading={reading} />
        </aside>
      </div>
      <Spoken reading={reading} />
    </CursorContext>
  );
}

function Beside({ panes }: { panes: Record<string, ReactNode> }) {
  return (
    <div className="panes">
      {Object.entries(panes).map(([title, pane]) => (
        <div key={title} className="pane">
          <h2>{title}</h2>
          {pane}
        </div>
      ))}
    </div>
  );
}

function Tabbed({ panes }: { panes: Record<string, ReactNode> }) {
  return (
    <Ariakit.TabProvider defaultSelectedId="pane-Tokens">
      <Ariakit.TabList className="row tabs" aria-label="Panes">
        {Object.keys(panes).map((title) => (
          <Ariakit.Tab key={title} id={`pane-${title}`} className="button">
            {title}
          </Ariakit.Tab>
        ))}
      </Ariakit.TabList>
      {Object.entries(panes).map(([title, pane]) => (
        <Ariakit.TabPanel key={title} tabId={`pane-${title}`} className="pane" unmountOnHide>
          {pane}
        </Ariakit.TabPanel>
      ))}
    </Ariakit.TabProvider>
  );
}

const NARROW = window.matchMedia("(width < 50rem)");

function useIsNarrow(): boolean {
  return useSyncExternalStore(
    (listener) => {
      NARROW.addEventListener("change", listener);
      return () => NARROW.removeEventListener("change", listener);
    },
    () => NARROW.matches,
  );
}
