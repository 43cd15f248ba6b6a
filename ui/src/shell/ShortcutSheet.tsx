import { Dialog } from "@/kit/Dialog";
import { useShortcutsInForce } from "@/kit/shortcuts";

/** The keys that do something on this screen. */
export function ShortcutSheet({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const shortcuts = useShortcutsInForce();
  return (
    <Dialog title="Keyboard shortcuts" isOpen={isOpen} onClose={onClose}>
      <table>
        <tbody>
          <tr>
            <th scope="row">
              <kbd>Ctrl</kbd>+<kbd>K</kbd>
            </th>
            <td>Go to a screen or a dataset</td>
          </tr>
          {shortcuts.map(({ key, what }) => (
            <tr key={`${key} ${what}`}>
              <th scope="row">
                <kbd>{key}</kbd>
              </th>
              <td>{what}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <div className="row">
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
