/** What `explain` says of a row, token by token: the answer's compact arrays made easy to ask. */
import type { Schemas } from "@/api/client";
import { type PlaceInText, placesIn } from "./places";
import { shownToken } from "./shown";

export type Explained = Schemas["Explained"];
type Span = Schemas["ExplainedSpan"];
type Told = Schemas["ExplainedCut"] | Schemas["ExplainedExample"];

/** What a model learns from has its own id as a label, everything else this one. */
const IGNORED = -100;
const NONE: readonly never[] = [];

/** A token, or, without a tokenizer, a span of the text. */
export interface Fact {
  /** Among all that are shown, cut ones too. */
  position: number;
  /** In its own example, or cut stretch. */
  place: number;
  /** Of its example; null: no example has it. */
  part: number | null;
  /** Its characters; those of a neighbour, too, where the bytes of one are spread over several tokens. */
  text: string;
  /** In hex, where they are no whole characters. */
  bytes: string | undefined;
  id: number | null;
  label: number | null;
  weight: number | null;
  /** What it costs the model, in nats; null where that was not asked, and of the first token. */
  nats: number | null;
  message: number | null;
  kind: string;
  /** null where only tokens would say it. */
  why: string | null;
  isTrained: boolean;
  isControl: boolean;
}

interface Run {
  end: number;
  message: number | null;
  kind: string;
  why: string | null;
}

/** The tokens of one example, or of a stretch that no example has; without a tokenizer its spans. */
export class Segment {
  readonly count: number;
  readonly runs: readonly Run[];
  /** Where each token ends in `text`, none before the one that it follows: so each character is of one token. */
  readonly upTo: Int32Array;
  private readonly starts: Int32Array;
  private readonly ends: Int32Array;
  private readonly ids: readonly number[] | null;
  private readonly labels: readonly number[] | null;
  private readonly weights: readonly number[] | null;
  private readonly nats: readonly (number | null)[] | null;
  private readonly trained: readonly boolean[] | null;
  private readonly control: ReadonlySet<number>;
  private readonly bytes: ReadonlyMap<number, string>;

  constructor(
    readonly text: string,
    /** Of the example; null: a stretch that no example has. */
    readonly part: number | null,
    /** The position of its first token. */
    readonly first: number,
    told: Told,
    /** Why what does not train does not, where only tokens would say it. */
    otherwise: string | null = null,
  ) {
    const spans = "spans" in told && told.input_ids === null ? told.spans : null;
    const offsets = spans?.map(({ start, end }) => [start, end] as const) ?? told.offsets;
    const at = placesIn(text);
    this.count = offsets.length;
    this.runs = spans?.map((span, index) => runOfSpan(span, index, otherwise)) ?? told.runs;
    this.ids = told.input_ids;
    this.labels = "labels" in told ? told.labels : null;
    this.weights = "weights" in told ? told.weights : null;
    this.nats = "nll" in told ? (told.nll ?? null) : null;
    this.trained = spans?.map((span) => span.trained) ?? null;
    this.control = new Set(told.control);
    this.bytes = new Map(told.bytes as [number, string][]);
    this.starts = Int32Array.from(offsets, ([start]) => at(start ?? 0));
    this.ends = Int32Array.from(offsets, ([, end]) => at(end ?? 0));
    this.upTo = risen(this.ends, text.length);
  }

  fact(place: number): Fact {
    const { message, kind, why } = this.runAt(place);
    return {
      position: this.first + place,
      place,
      part: this.part,
      text: this.text.slice(this.starts[place], this.ends[place]),
      bytes: this.bytes.get(place),
      id: this.ids?.[place] ?? null,
      label: this.labels?.[place] ?? null,
      weight: this.weights?.[place] ?? null,
      nats: this.nats?.[place] ?? null,
      message,
      kind,
      why,
      isTrained: this.isTrained(place),
      isControl: this.control.has(place),
    };
  }

  isTrained(place: number): boolean {
    if (this.trained) return this.trained[place] ?? false;
    return (this.labels?.[place] ?? IGNORED) !== IGNORED;
  }

  /** The run that a token is in. */
  runAt(place: number): Run {
    const run = this.runs[firstBeyond(this.runs.length, (number) => (this.runs[number]?.end ?? 0) > place)];
    if (!run) throw new RangeError(`token ${place} of ${this.count}`);
    return run;
  }

  /** What a token shows, which is not made of a fact: lines are made of all tokens. */
  shown(place: number): string {
    return shownToken(this.text.slice(this.starts[place], this.ends[place]), this.bytes.get(place));
  }

  /** Where the characters begin that no token before has. */
  from(place: number): number {
    return place === 0 ? 0 : (this.upTo[place - 1] ?? 0);
  }

  /** The token that a character of the text is shown as. */
  at(character: number): number {
    return firstBeyond(this.count, (place) => (this.upTo[place] ?? 0) > character);
  }
}

/** A row under one template, all that is shown of it in order. */
export class Reading {
  readonly segments: readonly Segment[];
  readonly count: number;
  readonly hasTokens: boolean;

  constructor(readonly explained: Explained) {
    this.segments = segmentsOf(explained);
    const last = this.segments.at(-1);
    this.count = last ? last.first + last.count : 0;
    this.hasTokens = explained.examples.some((example) => example.input_ids !== null);
  }

  segmentAt(position: number): Segment {
    const number = firstBeyond(this.segments.length, (index) => this.endOf(index) > position);
    const found = this.segments[number];
    if (!found) throw new RangeError(`token ${position} of ${this.count}`);
    return found;
  }

  private endOf(index: number): number {
    const segment = this.segments[index];
    return segment ? segment.first + segment.count : 0;
  }

  fact(position: number): Fact {
    const segment = this.segmentAt(position);
    return segment.fact(position - segment.first);
  }
}

/** The least number below `count` for which it holds (of those before none, of those behind all); else `count`. */
export function firstBeyond(count: number, holds: (number: number) => boolean): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

function runOfSpan({ message, kind, trained }: Span, index: number, otherwise: string | null): Run {
  return { end: index + 1, message, kind, why: trained ? "trained" : otherwise };
}

function risen(ends: Int32Array, last: number): Int32Array {
  let seen = 0;
  const found = ends.map((end) => {
    seen = Math.max(seen, end);
    return seen;
  });
  if (found.length > 0) found[found.length - 1] = last;
  return found;
}

/** The examples in order, each stretch that none of them has behind the one that ends before it. */
function segmentsOf(explained: Explained): Segment[] {
  const text = explained.text ?? "";
  const at: PlaceInText = placesIn(text);
  const told = explained.examples.map((example) => ({
    text: example.text,
    part: example.part as number | null,
    told: example as Told,
    reach: Math.max(0, ...(example.kept ?? NONE).map(([, end]) => end)),
  }));
  for (const cut of explained.cut) {
    const behind = told.findLastIndex(({ reach }) => reach <= cut.start);
    const one = { text: text.slice(at(cut.start), at(cut.end)), part: null, told: cut, reach: cut.end };
    told.splice(behind < 0 ? told.length : behind + 1, 0, one);
  }
  if (told.length === 0 && text !== "") return [ofRowThatLeaves(explained)];
  let first = 0;
  return told.map((one) => {
    const segment = new Segment(one.text, one.part, first, one.told);
    first += segment.count;
    return segment;
  });
}

/** The text of a row that gives no example. */
function ofRowThatLeaves({ text, spans }: Explained): Segment {
  const nothing = {
    input_ids: null,
    labels: null,
    weights: null,
    offsets: [],
    runs: [],
    control: [],
    bytes: [],
    kept: null,
  };
  return new Segment(text ?? "", null, 0, { part: 0, text: text ?? "", spans, ...nothing }, "rejected");
}
