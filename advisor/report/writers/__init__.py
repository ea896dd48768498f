"""Document -> text, one file a format; what a format would act on is made harmless here and only here."""
