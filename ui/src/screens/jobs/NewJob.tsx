import { Page } from "@/kit/Page";

export default function NewJob() {
  return <Page title="NewJob">{null}</Page>;
}
