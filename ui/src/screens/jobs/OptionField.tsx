import { useId } from "react";
import type { Field } from "./fields";

interface OptionFieldProps {
  field: Field;
  value: string;
  /** What the server said is wrong with it. */
  fault: string | null;
  /** Names that it can be, where the server knows them. */
  known?: readonly string[] | undefined;
  onChange: (value: string) => void;
}

/** One option of a job: its name, what it means, and what the server said of it. */
export function OptionField({ field, value, fault, known, onChange }: OptionFieldProps) {
  const id = useId();
  const choices = field.choices ?? known;
  const shared = {
    id,
    value,
    required: field.isRequired,
    "aria-describedby": `${id}-meaning`,
    "aria-invalid": fault !== null,
    onChange: (event: { target: { value: string } }) => onChange(event.target.value),
  };
  return (
    <div className="field">
      <label htmlFor={id}>
        {field.title}
        {field.isRequired ? null : <small> (may be left open)</small>}
      </label>
      {choices ? (
        <select {...shared}>
          <option value="">{field.isRequired ? "choose one" : "the usual one"}</option>
          {choices.map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      ) : (
        <input {...shared} {...inputOf(field)} placeholder={field.usual} autoComplete="off" />
      )}
      <small id={`${id}-meaning`}>
        {field.meaning}
        {fault ? (
          <span className="fault" role="alert">
            {" "}
            {fault}
          </span>
        ) : null}
      </small>
    </div>
  );
}

function inputOf(field: Field) {
  if (field.kind === "text") return { type: "text" };
  return { type: "number", step: field.kind === "whole" ? 1 : "any", min: field.least, max: field.most };
}
