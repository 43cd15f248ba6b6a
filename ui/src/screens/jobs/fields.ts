/** The options of a job, as the server's own description of its interface says them. */

export interface Field {
  name: string;
  /** Its name in words. */
  title: string;
  meaning: string;
  kind: "whole" | "number" | "text";
  /** What it can be, where it is one of a few. */
  choices: readonly string[] | null;
  isRequired: boolean;
  /** What it is where nothing is said; "": the server finds it. */
  usual: string;
  least?: number;
  most?: number;
  pattern?: string;
}

interface Schema {
  type?: string;
  description?: string;
  default?: unknown;
  const?: unknown;
  enum?: string[];
  pattern?: string;
  minimum?: number;
  exclusiveMinimum?: number;
  maximum?: number;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
}

export interface Description {
  components: { schemas: Record<string, Schema> };
}

/** Fields of a kind of job, those of `dataset` and `kind` aside; the ones that must be said come first. */
export function fieldsOf(description: Description, kind: string): Field[] {
  const said = Object.values(description.components.schemas).find(({ properties }) => {
    return properties?.dataset !== undefined && properties.kind?.const === kind;
  });
  const required = new Set(said?.required ?? []);
  const fields = Object.entries(said?.properties ?? {})
    .filter(([name]) => name !== "dataset" && name !== "kind")
    .map(([name, schema]) => fieldOf(name, schema, required.has(name)));
  return fields.sort((first, second) => Number(second.isRequired) - Number(first.isRequired));
}

function fieldOf(name: string, schema: Schema, isRequired: boolean): Field {
  const of = { ...schema, ...schema.anyOf?.find(({ type }) => type !== "null") };
  const least = of.minimum ?? of.exclusiveMinimum;
  return {
    name,
    title: name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " "),
    meaning: schema.description ?? "",
    kind: of.type === "integer" ? "whole" : of.type === "number" ? "number" : "text",
    choices: of.enum ?? null,
    isRequired,
    usual: schema.default === undefined || schema.default === null ? "" : String(schema.default),
    ...(least === undefined ? {} : { least }),
    ...(of.maximum === undefined ? {} : { most: of.maximum }),
    ...(of.pattern === undefined ? {} : { pattern: of.pattern }),
  };
}

/** The options that were said, as the server takes them; what is empty is left to it. */
export function optionsOf(
  fields: readonly Field[],
  typed: Record<string, string>,
): Record<string, string | number> {
  const said = fields.map((field) => [field, (typed[field.name] ?? "").trim()] as const);
  return Object.fromEntries(
    said
      .filter(([, value]) => value !== "")
      .map(([{ name, kind }, value]) => [name, kind === "text" ? value : Number(value)]),
  );
}

/** The field that a fault of a refusal is about: `body.train.max_steps` is `max_steps`. */
export function faultOf(
  faults: readonly { at?: string | null; error: string }[],
  name: string,
): string | null {
  return faults.find(({ at }) => at?.split(".").at(-1) === name)?.error ?? null;
}
