import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, client } from "@/api/client";
import { saveFile } from "@/api/download";
import { Asked } from "@/kit/Asked";
import { Head, numbers } from "@/kit/Head";
import { bytes } from "@/kit/numbers";
import { ProblemBox } from "@/kit/ProblemBox";

/** What came of a job, to be kept as files. */
export function Files({ id }: { id: string }) {
  const files = useInfiniteQuery({
    queryKey: ["job", id, "files"],
    queryFn: ({ pageParam }) =>
      answered(
        client.GET("/v1/training/jobs/{job_id}/files", {
          params: { path: { job_id: id }, query: pageParam ? { after: pageParam } : {} },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next ?? undefined,
  });
  return (
    <section aria-label="Files">
      <h2>Files</h2>
      <Asked query={files} what="the files">
        {({ pages }) => (
          <div className="scroll-x">
            <table>
              <Head columns={["File", numbers("Size")]} />
              <tbody>
                {pages.flatMap((page) =>
                  page.files.map((file) => (
                    <tr key={file.path}>
                      <td>
                        <OneFile id={id} path={file.path} />
                      </td>
                      <td className="number">{bytes(file.size_bytes)}</td>
                    </tr>
                  )),
                )}
              </tbody>
            </table>
          </div>
        )}
      </Asked>
      {files.hasNextPage ? (
        <button type="button" onClick={() => void files.fetchNextPage()} disabled={files.isFetchingNextPage}>
          More files
        </button>
      ) : null}
    </section>
  );
}

function OneFile({ id, path }: { id: string; path: string }) {
  const [isComing, setComing] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const save = async () => {
    setComing(true);
    setError(null);
    try {
      const place = path.split("/").map(encodeURIComponent).join("/");
      await saveFile(`/v1/training/jobs/${id}/files/${place}`, path.split("/").at(-1) ?? "file");
    } catch (failed) {
      setError(failed);
    } finally {
      setComing(false);
    }
  };
  return (
    <>
      <button type="button" className="plain link" onClick={() => void save()} disabled={isComing}>
        <span className="mono">{path}</span>
        <span className="visually-hidden">: download</span>
      </button>
      {error ? <ProblemBox error={error} onRetry={() => void save()} /> : null}
    </>
  );
}
