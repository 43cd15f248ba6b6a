import { Page } from "@/kit/Page";

export default function Datasets() {
  return <Page title="Datasets">{null}</Page>;
}
