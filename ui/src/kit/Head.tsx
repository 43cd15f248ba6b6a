interface NumberColumn {
  title: string;
  isNumber: true;
}

type Column = string | NumberColumn;

/** A column of numbers, which stand at its right. */
export function numbers(title: string): NumberColumn {
  return { title, isNumber: true };
}

/** The head of a table: a title for each column, "" where it needs none. */
export function Head({ columns }: { columns: readonly Column[] }) {
  return (
    <thead>
      <tr>
        {columns.map((column) => {
          const title = typeof column === "string" ? column : column.title;
          if (title === "") return <td key="untitled" />;
          return (
            <th key={title} scope="col" className={typeof column === "string" ? undefined : "number"}>
              {title}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}
