import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { answered, client } from "@/api/client";
import { Confirm } from "@/kit/Dialog";
import { ProblemBox } from "@/kit/ProblemBox";

/** Removes a dataset, once that was confirmed. */
export function RemoveDataset({ name }: { name: string }) {
  const [isAsking, setAsking] = useState(false);
  const [, navigate] = useLocation();
  const queries = useQueryClient();
  const remove = useMutation({
    mutationFn: () =>
      answered(client.DELETE("/v1/training/datasets/by-name/{name}", { params: { path: { name } } })),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: ["datasets"] });
      navigate("/");
    },
    onSettled: () => setAsking(false),
  });
  return (
    <>
      <h3>Removal</h3>
      <button type="button" className="danger" onClick={() => setAsking(true)}>
        Remove the dataset …
      </button>
      {remove.error ? <ProblemBox error={remove.error} /> : null}
      <Confirm
        title={`Remove ${name}?`}
        isOpen={isAsking}
        action={`Remove ${name}`}
        onConfirm={() => remove.mutate()}
        onClose={() => setAsking(false)}
      >
        <p>
          Its directory leaves the shelf with everything in it. Its record and the jobs that used it stay.
        </p>
      </Confirm>
    </>
  );
}
