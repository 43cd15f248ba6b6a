/** Offsets of the server count characters; those of the browser's strings count UTF-16 units. */

/** A character's number → where it begins in the string. */
export type PlaceInText = (character: number) => number;

const BEYOND = /[\ud800-\udbff]/;

export function placesIn(text: string): PlaceInText {
  if (!BEYOND.test(text)) return (character) => character;
  const places: number[] = [];
  let unit = 0;
  for (const character of text) {
    places.push(unit);
    unit += character.length;
  }
  return (character) => places[character] ?? unit;
}
