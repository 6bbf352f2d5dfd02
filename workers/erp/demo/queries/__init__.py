"""The demo ERP's domain queries; what each is for stands in ``forms.yaml`` under ``queries``."""
