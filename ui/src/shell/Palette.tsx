import * as Ariakit from "@ariakit/react";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useLocation } from "wouter";
import { answered, client } from "@/api/client";
import { datasetPath, PLACES } from "@/routes";

interface Entry {
  title: string;
  path: string;
}

const MOST = 30;

/** Where one can go, by typing some of its name. */
export function Palette({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const [, navigate] = useLocation();
  const [typed, setTyped] = useState("");
  const found = useFound(typed, isOpen);
  const go = (path: string) => {
    setTyped("");
    onClose();
    navigate(path);
  };
  return (
    <Ariakit.Dialog
      open={isOpen}
      onClose={onClose}
      className="dialog palette"
      aria-label="Go to"
      backdrop={<div className="dialog-backdrop" />}
      unmountOnHide
    >
      <Ariakit.ComboboxProvider open includesBaseElement={false} value={typed} setValue={setTyped}>
        <Ariakit.Combobox
          autoSelect="always"
          placeholder="A screen or a dataset"
          aria-label="Go to"
          autoFocus
        />
        <Ariakit.ComboboxList alwaysVisible className="palette-list">
          {found.map(({ title, path }) => (
            <Ariakit.ComboboxItem key={path} value={title} setValueOnClick={false} onClick={() => go(path)}>
              {title}
            </Ariakit.ComboboxItem>
          ))}
        </Ariakit.ComboboxList>
        {found.length === 0 ? <p role="status">Nothing is called that.</p> : null}
      </Ariakit.ComboboxProvider>
    </Ariakit.Dialog>
  );
}

function useFound(typed: string, isOpen: boolean): Entry[] {
  const datasets = useQuery({
    queryKey: ["datasets"],
    queryFn: () => answered(client.GET("/v1/training/datasets")),
    enabled: isOpen,
  });
  return useMemo(() => {
    const entries: Entry[] = [
      ...PLACES,
      { title: "Start a job", path: "/jobs/new" },
      ...(datasets.data?.datasets ?? []).flatMap(({ name }) => [
        { title: `${name}: rows`, path: datasetPath(name) },
        { title: `${name}: quarantine`, path: datasetPath(name, "quarantine") },
        { title: `${name}: start a job`, path: `/jobs/new?dataset=${encodeURIComponent(name)}` },
      ]),
    ];
    const words = typed.toLowerCase().split(/\s+/);
    return entries
      .filter(({ title }) => words.every((word) => title.toLowerCase().includes(word)))
      .slice(0, MOST);
  }, [typed, datasets.data]);
}
