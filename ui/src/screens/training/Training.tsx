import { Page } from "@/kit/Page";

export default function Training() {
  return <Page title="Training">{null}</Page>;
}
